package manifest

import (
	"bytes"
	"encoding/json"
	"testing"
)

// The quick look finds every value that is masked. It does not take names and hashes
// for numbers: to look closely at every object takes as long as to decode it.
func FuzzLongExponent(f *testing.F) {
	for text, want := range map[string]bool{
		`{"a":1e9999}`: true, `[-1.5E+12345]`: true, `[1e-0000]`: true, `["1e9999"]`: true, `[" -.5e99999 "]`: true, `{"a": 12e1234, "b":2}`: true,
		`["node-0001"]`: false, `["e1234"]`: false, `["sha256:7a4e9912"]`: false, `["a1e9999"]`: false, `[1e999]`: false, `["x-1e9999"]`: false,
	} {
		f.Add([]byte(text))
		if longExponent([]byte(text)) != want {
			f.Errorf("%s: %v", text, !want)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		data := append(append([]byte("["), text...), ']') // as in an object, something follows
		if json.Valid(data) && !longExponent(data) && bytes.Contains(masked(data), []byte(hugeExponent)) && !bytes.Contains(data, []byte(hugeExponent)) {
			t.Errorf("%q: a value has a long exponent", data)
		}
	})
}

package manifest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// The quick look finds every value that is masked. It does not take names and hashes
// for numbers: to look closely at every object takes as long as to decode it.
func FuzzLongNumber(f *testing.F) {
	digits := strings.Repeat("1", maxDigits)
	for text, want := range map[string]bool{
		`{"a":1e9999}`: true, `[-1.5E+12345]`: true, `[1e-0000]`: true, `["1e9999"]`: true, `[" -.5e99999 "]`: true,
		"[\"\u00a01e9999\"]": true, `["` + digits + `1Ki"]`: true, `[.` + digits + `1]`: true, `["` + digits + "." + digits + `"]`: false,
		`{"a": 12e1234, "b":2}`: true,
		`["node-0001"]`:         false, `["e1234"]`: false, `["sha256:7a4e9912"]`: false, `["a1e9999"]`: false, `[1e999]`: false, `["x-1e9999"]`: false,
	} {
		f.Add([]byte(text))
		if longNumber([]byte(text)) != want {
			f.Errorf("%s: %v", text, !want)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		data := append(append([]byte("["), text...), ']') // as in an object, something follows
		if json.Valid(data) && !longNumber(data) && !bytes.Equal(masked(data), data) {
			t.Errorf("%q: a value is a long number", data)
		}
	})
}

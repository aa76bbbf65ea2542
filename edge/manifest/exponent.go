package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"

	kjson "sigs.k8s.io/json"

	"github.com/berth-scheduler/berth/edge/decode"
)

// maxExponent is the most digits that an exponent may have. The arithmetic of
// quantities writes out all the zeros, which for 1e99999999 takes for ever.
const maxExponent = 3

// hugeExponent stands in for a number with more than that. It is no quantity,
// so where it is accepted any text is.
const hugeExponent = "a number with a huge exponent"

// exponents refuses the object when a quantity in it has too long an exponent.
// It must be asked before the object is decoded.
func (r raw) exponents(k *decode.Kind) error {
	masked := maskExponents(r.data)
	if !bytes.Contains(masked, []byte(hugeExponent)) {
		return nil
	}
	var doc any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(masked, &doc); err != nil {
		return errNotJSON
	}
	path, err := firstBad(doc, nil, func(leaf any) any { return leaf }, func(alone any) error {
		data, err := json.Marshal(alone)
		if err != nil || !bytes.Contains(data, []byte(hugeExponent)) {
			return err
		}
		return kjson.UnmarshalCaseSensitivePreserveInts(data, k.New())
	})
	if err != nil {
		return fmt.Errorf("%s: an exponent of more than %d digits", path, maxExponent)
	}
	return nil
}

var (
	textOrHuge = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|` + huge)
	hugeText   = regexp.MustCompile(`^"\s*` + huge + `\s*"$`)
)

const huge = `[-+]?[0-9.]+[eE][-+]?[0-9]{4,}`

// maskExponents replaces the JSON values, numbers or texts, that are a number
// with too long an exponent; nil when there surely is none. Quantities are
// read without regard to escapes, so none can hide behind those.
func maskExponents(data []byte) []byte {
	if !longExponent(data) {
		return nil
	}
	return masked(data)
}

func masked(data []byte) []byte {
	return textOrHuge.ReplaceAllFunc(data, func(value []byte) []byte {
		if value[0] == '"' && !hugeText.Match(value) {
			return value
		}
		return []byte(`"` + hugeExponent + `"`)
	})
}

// longExponent looks quickly for what may be a number with too long an exponent.
func longExponent(data []byte) bool {
	digits := 0
	for i, c := range data {
		if '0' <= c && c <= '9' {
			digits++
			continue
		}
		if digits > maxExponent && endsMantissa(data[:i-digits]) {
			return true
		}
		digits = 0
	}
	return false
}

// endsMantissa tells whether the data ends in the digits of a number, with which a
// value may begin, and an e. Names such as node-0001 and hashes have an e before digits,
// too.
func endsMantissa(data []byte) bool {
	data = cutSign(data)
	if n := len(data); n == 0 || data[n-1]|0x20 != 'e' {
		return false
	}
	data = data[:len(data)-1]
	number := bytes.TrimRight(data, "0123456789.")
	if len(number) == len(data) {
		return false
	}
	number = cutSign(number)
	return len(number) == 0 || bytes.IndexByte([]byte("\":,[ \t\n\f\r"), number[len(number)-1]) >= 0
}

func cutSign(data []byte) []byte {
	if n := len(data); n > 0 && (data[n-1] == '-' || data[n-1] == '+') {
		return data[:n-1]
	}
	return data
}

package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"

	kjson "sigs.k8s.io/json"

	"github.com/berth-scheduler/berth/edge/decode"
)

// maxExponent and maxDigits are the most digits of an exponent, and in a row of a number.
// The arithmetic of quantities writes out all the zeros of an exponent, which for
// 1e99999999 takes for ever, and takes the square of the time for twice the digits.
const maxExponent, maxDigits = 3, 100

// These stand in for a number that is too long. They are no quantities, so where one is
// accepted any text is.
const (
	hugeExponent = "a number with a huge exponent"
	manyDigits   = "a number with very many digits"
)

// numbers refuses the object when a quantity in it has too long an exponent or too many
// digits. It must be asked before the object is decoded.
func (r raw) numbers(k *decode.Kind) error {
	if !longNumber(r.data) {
		return nil
	}
	var doc any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(masked(r.data), &doc); err != nil {
		return errNotJSON
	}
	what := ""
	path, err := firstBad(doc, nil, func(leaf any) any { return leaf }, func(alone any) error {
		data, err := json.Marshal(alone)
		switch {
		case err != nil:
			return err
		case bytes.Contains(data, []byte(hugeExponent)):
			what = fmt.Sprintf("an exponent of more than %d digits", maxExponent)
		case bytes.Contains(data, []byte(manyDigits)):
			what = fmt.Sprintf("a number of more than %d digits", maxDigits)
		default:
			return nil
		}
		return kjson.UnmarshalCaseSensitivePreserveInts(data, k.New())
	})
	if err != nil {
		return fmt.Errorf("%s: %s", path, what)
	}
	return nil
}

var textOrNumber = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?`)

// masked replaces the JSON values, numbers or texts, that are a number with too long an
// exponent or too many digits. Quantities are read without regard to escapes, so none can
// hide behind those.
func masked(data []byte) []byte {
	return textOrNumber.ReplaceAllFunc(data, func(value []byte) []byte {
		number := cutFirstSign(bytes.TrimSpace(bytes.Trim(value, `"`)))
		rest := bytes.TrimLeft(number, "0123456789.")
		mantissa := number[:len(number)-len(rest)]
		switch {
		case len(mantissa) > 0 && hasHugeExponent(rest):
			return []byte(`"` + hugeExponent + `"`)
		case longestRow(mantissa) > maxDigits:
			return []byte(`"` + manyDigits + `"`)
		}
		return value
	})
}

// hasHugeExponent reports whether the data is an exponent with too many digits.
func hasHugeExponent(data []byte) bool {
	if len(data) == 0 || data[0]|0x20 != 'e' {
		return false
	}
	digits := cutFirstSign(data[1:])
	return len(digits) > maxExponent && len(bytes.TrimLeft(digits, "0123456789")) == 0
}

func longestRow(mantissa []byte) (most int) {
	for row := range bytes.SplitSeq(mantissa, []byte(".")) {
		most = max(most, len(row))
	}
	return most
}

// longNumber looks quickly for what may be a number with too long an exponent or too many
// digits.
func longNumber(data []byte) bool {
	digits := 0
	for i, c := range data {
		if '0' <= c && c <= '9' {
			if digits++; digits > maxDigits {
				return true
			}
			continue
		}
		if digits > maxExponent && endsMantissa(data[:i-digits]) {
			return true
		}
		digits = 0
	}
	return false
}

// endsMantissa reports whether the data ends in the digits of a number, with which a
// value may begin, and an e. Names such as node-0001 and hashes have an e before digits,
// too. Quantities may follow any space of Unicode.
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
	if len(number) == 0 {
		return true
	}
	before := number[len(number)-1]
	return before >= 0x80 || bytes.IndexByte([]byte("\":,[ \t\n\f\r"), before) >= 0
}

// cutSign returns the data without the sign that it ends in.
func cutSign(data []byte) []byte {
	if n := len(data); n > 0 && isSign(data[n-1]) {
		return data[:n-1]
	}
	return data
}

// cutFirstSign returns the data without the sign that it begins with.
func cutFirstSign(data []byte) []byte {
	if len(data) > 0 && isSign(data[0]) {
		return data[1:]
	}
	return data
}

func isSign(c byte) bool { return c == '-' || c == '+' }

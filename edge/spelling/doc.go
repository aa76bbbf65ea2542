// Package spelling says how far two names are from each other, so that an error
// can propose the name that was meant.
package spelling

import (
	"slices"
	"strings"
	"unicode"
)

// Distance is how many bytes have to be changed, added or taken away to make b
// of a: the Levenshtein distance. It is 0 for equal names.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Near reports whether b may be what somebody meant who wrote a, another name: they differ
// in case, in punctuation, in a letter that is doubled, in two neighbours that changed places, or
// in one or two letters of a name with many. Names whose numbers
// or last letters alone differ, such as those of zones, are members of a series.
func Near(a, b string) bool {
	a, b = plain(a), plain(b)
	if a == b {
		return true
	}
	short, long := min(len(a), len(b)), max(len(a), len(b))
	if long-short > 2 || digits(a) != digits(b) {
		return false
	}
	if short >= 3 && (a+"s" == b || b+"s" == a || single(a) == single(b) || swapped(a, b)) {
		return true
	}
	if len(a) == len(b) && a[:short-1] == b[:short-1] {
		return false
	}
	return Distance(a, b) <= min(2, (short-len(digits(a)))/4)
}

// single is a name without repeated characters that follow each other.
func single(name string) string {
	return string(slices.Compact([]byte(name)))
}

// swapped reports whether the names differ in two neighbours that changed places.
func swapped(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) - 1 {
		if a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
}

// plain is a name in small letters without punctuation.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_.", r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// digits are the digits of a name.
func digits(name string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, name)
}

package terminal

import (
	"fmt"
	"io"
)

// Plural returns one if n is 1, else more.
func Plural[N int | uint64](n N, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// Count returns n with the noun: "1 pod", "2 pods".
func Count[N int | uint64](n N, noun string) string {
	return fmt.Sprintf("%d %s", n, Plural(n, noun, noun+"s"))
}

// More writes the line after a list that leaves out rest items, which -o wide shows. It writes
// nothing if rest is 0.
func More(w io.Writer, indent string, rest int) {
	if rest > 0 {
		fmt.Fprintf(w, "%s(and %d more: -o wide)\n", indent, rest)
	}
}

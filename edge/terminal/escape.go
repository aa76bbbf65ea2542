package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// safe reports whether a terminal shows the character as itself: it is graphic and not
// one that Unicode lets a display ignore. Controls, formats such as the bidirectional
// ones, and separators of lines and paragraphs are not graphic.
func safe(r rune) bool {
	if r < utf8.RuneSelf {
		return ' ' <= r && r <= '~'
	}
	return unicode.IsGraphic(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Escape returns the text with an escape in place of each character that is not safe on
// a terminal, line feeds and tabs among them. A byte that is not UTF-8 becomes U+FFFD.
func Escape(s string) string {
	for i, r := range s {
		if !safe(r) || r == utf8.RuneError {
			return s[:i] + escaped(s[i:])
		}
	}
	return s
}

func escaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		writeRune(&b, r)
	}
	return b.String()
}

// short are the escapes of JSON that have a letter.
var short = map[rune]string{'\n': `\n`, '\t': `\t`, '\r': `\r`, '\b': `\b`, '\f': `\f`}

func writeRune(b *strings.Builder, r rune) {
	high, low := utf16.EncodeRune(r)
	switch {
	case safe(r):
		b.WriteRune(r)
	case short[r] != "":
		b.WriteString(short[r])
	case r > 0xffff: // JSON has no escape that is longer
		fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
	default:
		fmt.Fprintf(b, `\u%04x`, r)
	}
}

// Fprintf formats as fmt.Fprintf does and escapes what comes of each argument.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	for i, a := range args {
		args[i] = argument{a}
	}
	return fmt.Fprintf(w, format, args...)
}

// argument is a value that is escaped as it is formatted.
type argument struct{ value any }

func (a argument) Format(f fmt.State, verb rune) {
	_, _ = io.WriteString(f, Escape(fmt.Sprintf(fmt.FormatString(f, verb), a.value)))
}

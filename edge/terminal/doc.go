// Package terminal keeps text from outside from acting on a terminal. Names and
// messages of API objects, files, extenders and daemons may hold escape sequences,
// line breaks and characters that are not seen or reorder what is seen.
//
// Two walls stand between them and a terminal. Fprintf escapes each of its arguments:
// a line break in its output is one of the format, so no value can forge a line.
// Writer is what all output of a program passes at the end. It escapes everything but
// graphic characters, line feeds and tabs, whoever forgot it.
//
// An escape is one of JSON (\n, \u001b), so JSON stays equal. YAML makes YAML of which
// the same is true.
package terminal

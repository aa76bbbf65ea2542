package fix

import "strings"

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

func list(names []string) string { return strings.Join(names, ", ") }

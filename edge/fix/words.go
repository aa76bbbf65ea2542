package fix

import (
	"fmt"
	"strings"
)

// mostNamed bounds the names in a list.
const mostNamed = 10

func list(names []string) string {
	if len(names) > mostNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
	}
	return strings.Join(names, ", ")
}

// mostText bounds what is quoted of an object.
const mostText = 200

// short is the text, or the beginning of it.
func short(text string) string {
	if len(text) > mostText {
		return text[:mostText] + "..."
	}
	return text
}

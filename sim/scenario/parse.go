package scenario

import (
	"fmt"
	"strings"
)

// Story is one parsed file.
type Story struct {
	File  string
	Steps []Step
}

// Step is one directive: its words, and the indented block that follows.
type Step struct {
	Line  int
	Words []string
	// Text is what follows the first ": " of the line, to the letter; "" if
	// there is none.
	Text  string
	Block string
}

// Parse reads a story. Errors name file and line.
func Parse(file, text string) (*Story, error) {
	s := &Story{File: file}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, " \t\r")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == ' ' || line[0] == '\t':
			if len(s.Steps) == 0 {
				return nil, fmt.Errorf("%s:%d: indented, but no directive stands before", file, i+1)
			}
			last := &s.Steps[len(s.Steps)-1]
			last.Block += line + "\n"
		default:
			step := Step{Line: i + 1}
			head := line
			if before, after, ok := strings.Cut(line, ": "); ok && (strings.HasPrefix(line, "expect ") || strings.HasPrefix(line, "differs ")) {
				head, step.Text = before, after
			}
			var err error
			if step.Words, err = split(head); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
			}
			s.Steps = append(s.Steps, step)
		}
	}
	return s, nil
}

// split cuts at spaces that stand outside of double quotes; the quotes go.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	quoted, begun := false, false
	for _, r := range line {
		switch {
		case r == '"':
			quoted, begun = !quoted, true
		case r == ' ' && !quoted:
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quoted {
		return nil, fmt.Errorf("a quote is not closed")
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

package breaks

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed breaks.txt
var text string

// defaultSeeds are the worlds that are played of each mix.
const defaultSeeds = "1-25"

// Break is one fault.
type Break struct {
	Plugin, What string
	Mixes        []string // that have to disagree
	Seeds        string
	File         string // from the root of the project
	Old, New     string // Old stands in the file once
}

// List is the faults of breaks.txt.
func List() ([]Break, error) { return parse(text) }

func parse(text string) ([]Break, error) {
	var list []Break
	for block := range strings.SplitSeq(text, "\n\n") {
		var lines []string
		for line := range strings.SplitSeq(strings.TrimSpace(block), "\n") {
			if !strings.HasPrefix(line, "#") && line != "" {
				lines = append(lines, line)
			}
		}
		if len(lines) == 0 {
			continue
		}
		b, err := newBreak(lines)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", lines[0], err)
		}
		list = append(list, b)
	}
	return list, nil
}

func newBreak(lines []string) (Break, error) {
	head := strings.Split(lines[0], " | ")
	if len(head) != 3 && len(head) != 4 {
		return Break{}, fmt.Errorf("want plugin | what | mixes, and seeds if need be")
	}
	b := Break{Plugin: head[0], What: head[1], Mixes: strings.Fields(head[2]), Seeds: defaultSeeds}
	if len(head) == 4 {
		b.Seeds = head[3]
	}
	if len(lines) != 4 || !strings.HasPrefix(lines[2], "- ") || !strings.HasPrefix(lines[3], "+ ") || len(b.Mixes) == 0 {
		return Break{}, fmt.Errorf("want mixes, a file, a line with -, and one with +")
	}
	b.File, b.Old, b.New = lines[1], lines[2][2:], lines[3][2:]
	return b, nil
}

// broken is the file's text with the fault.
func (b *Break) broken(root string) (string, error) {
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(b.File)))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), b.Old); n != 1 {
		return "", fmt.Errorf("%s has %q %d times, want once", b.File, b.Old, n)
	}
	return strings.Replace(string(source), b.Old, b.New, 1), nil
}

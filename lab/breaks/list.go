package breaks

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The faults that the comparison with kube-scheduler has to see, and those that
// whole schedulers under faults have to show.
var (
	//go:embed breaks.txt
	compared string
	//go:embed daemon.txt
	simulated string
)

// These stand in the place of a mix for a fault that something else has to show: the
// simulation of whole schedulers, with something added or not; the tests of the file's
// package, where random worlds hardly get; or the stories in scenarios/, for what
// kube-scheduler cannot play.
var simulations = []string{"sim", "sim-volumes", "sim-limits", "sim-devices", "sim-extenders", "sim-clocks", "sim-constraints", "sim-budgets", "sim-groups", "sim-quotas"}

const (
	unit    = "unit"
	stories = "stories"
)

// defaultSeeds are the worlds that are played of each mix.
const defaultSeeds = "1-25"

// Break is one fault.
type Break struct {
	Plugin, What string
	Mixes        []string // that have to disagree; or one of simulations, or unit, or stories
	Seeds        string
	File         string // from the root of the project
	Old, New     string // Old stands in the file once
}

// List is the faults of breaks.txt and daemon.txt.
func List() ([]Break, error) { return parse(compared + "\n\n" + simulated) }

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
	if len(b.Mixes) == 0 || len(lines) < 4 {
		return Break{}, fmt.Errorf("want mixes, a file, lines with -, and lines with +")
	}
	b.File = lines[1]
	var before, after []string
	for _, line := range lines[2:] {
		switch {
		case strings.HasPrefix(line, "- ") && len(after) == 0:
			before = append(before, line[2:])
		case strings.HasPrefix(line, "+ ") && len(before) > 0:
			after = append(after, line[2:])
		default:
			return Break{}, fmt.Errorf("%q: want lines with -, then lines with +", line)
		}
	}
	if len(after) == 0 {
		return Break{}, fmt.Errorf("want lines with +")
	}
	b.Old, b.New = strings.Join(before, "\n"), strings.Join(after, "\n")
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

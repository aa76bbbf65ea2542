package chaos

import (
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/sim/scenario"
)

// Shrink cuts down a story that fails: it leaves out steps, many at first, then
// one by one, as long as what is left still fails. fails plays a story.
func Shrink(s *scenario.Story, fails func(*scenario.Story) bool) *scenario.Story {
	for size := len(s.Steps) / 2; size >= 1; {
		smaller := false
		for from := 0; from < len(s.Steps); {
			without := without(s, from, min(from+size, len(s.Steps)))
			if len(without.Steps) < len(s.Steps) && fails(without) {
				s, smaller = without, true
			} else {
				from += size
			}
		}
		if !smaller || size > 1 {
			size /= 2
		}
	}
	return s
}

// without leaves steps out, except for those that every story needs.
func without(s *scenario.Story, from, to int) *scenario.Story {
	kept := &scenario.Story{File: s.File}
	for i := range s.Steps {
		if verb := s.Steps[i].Words[0]; i < from || i >= to || verb == "seed" || verb == "replicas" || verb == "extender" || verb == "batch" {
			kept.Steps = append(kept.Steps, s.Steps[i])
		}
	}
	return kept
}

// Write is the story as text.
func Write(s *scenario.Story) string {
	var b strings.Builder
	for i := range s.Steps {
		words := slices.Clone(s.Steps[i].Words)
		for j, w := range words {
			if strings.Contains(w, " ") {
				words[j] = `"` + w + `"`
			}
		}
		b.WriteString(strings.Join(words, " ") + "\n")
	}
	return b.String()
}

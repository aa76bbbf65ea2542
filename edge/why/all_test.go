package why

import (
	"slices"
	"strings"
	"testing"
)

// Each pod of a cause is named or counted, also beyond the examples that are kept.
func TestCauseNamesOrCountsAll(t *testing.T) {
	for pods, want := range map[int]string{1: "p", 4: "p, p, p, p", 5: "p, p, p and 2 more", 6: "p, p, p and 3 more", 412: "p, p, p and 409 more"} {
		r := List{Pods: pods, Causes: []Cause{{Pods: pods, Examples: slices.Repeat([]string{"p"}, min(pods, 5)), Sentence: "blocked"}}}
		var out strings.Builder
		if err := r.Text(&out, false); err != nil || !strings.Contains(out.String(), "\n  "+want+"\n") {
			t.Errorf("%d pods: %q, want %q", pods, out.String(), want)
		}
	}
}

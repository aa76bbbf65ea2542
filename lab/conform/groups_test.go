package conform

import (
	"fmt"
	"strings"
	"testing"
)

// Of pod groups in worlds at random kube-scheduler says the same of each pod and each group.
// The first worlds are rare: a cycle that cannot begin ends twice before anything else is
// compared (332, 385), a victim of a single pod goes before the nomination is shown (509), a
// pod to be deleted was evicted (525), and a gang loses bound pods while it backs off (536).
func TestGroups(t *testing.T) {
	silence()
	var total storyCounts
	seeds := []uint64{332, 385, 509, 525, 536}
	for seed := uint64(1); seed <= 60; seed++ {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		text := groupStory(seed)
		counts, said := compareStory(fmt.Sprintf("seed %d", seed), text)
		total.add(counts)
		if len(said) > 0 {
			t.Errorf("%s\n%s", strings.Join(said, "\n"), text)
			break
		}
	}
	t.Logf("%+v", total)
	if total.decisions < 400 {
		t.Errorf("only %d decisions were compared", total.decisions)
	}
}

package conform

import (
	"fmt"
	"strings"
	"testing"
)

// Of pod groups in worlds at random kube-scheduler says the same of each pod and each group.
func TestGroups(t *testing.T) {
	silence()
	var total storyCounts
	for seed := uint64(1); seed <= 60; seed++ {
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

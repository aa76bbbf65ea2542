package conform

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// The stories about pod groups are played beside kube-scheduler.
func TestGroupStories(t *testing.T) {
	silence()
	var out strings.Builder
	if err := playStories(filepath.Join("..", "..", "scenarios", "podgroups"), &out); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	t.Log(out.String())
}

// Of pod groups in worlds at random kube-scheduler says the same of each pod and each group.
func TestGroups(t *testing.T) {
	silence()
	var total storyCounts
	for seed := range uint64(150) {
		text := groupStory(seed)
		counts, said := compareStory(fmt.Sprintf("seed %d", seed), text)
		total.add(counts)
		if len(said) > 0 {
			t.Errorf("%s\n%s", strings.Join(said, "\n"), text)
			break
		}
	}
	t.Logf("%+v", total)
	if total.decisions < 500 {
		t.Errorf("only %d decisions were compared", total.decisions)
	}
}

package tool

import (
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/sim/generate"
)

// With its views off the scheduler prints the same bytes, explanations
// included: on 1,000 clusters of all mixes, those with preemption among them. The
// other invariants are off here: they take three times as long as the comparison.
func TestViewsOff(t *testing.T) {
	t.Setenv("BERTH_CHECK", "")
	mixes, clusters := generate.Mixes(), 1000
	if testing.Short() {
		clusters = 100
	}
	preempted := false
	for i := range clusters {
		w, err := generate.Cluster(mixes[i%len(mixes)], uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		writeWorld(t, dir, w)
		for _, form := range []string{"json", "wide"} {
			if form == "wide" && i%10 > 0 {
				continue // it holds the same decisions
			}
			s := simulation{source: source{api: newConnection(), expand: "auto", seed: uint64(i), workers: 1}, output: form, explain: true, views: true, timeout: timeLimit{usualTime}}
			on := simulated(t, dir, w, s)
			s.views = false
			if off := simulated(t, dir, w, s); on != off {
				t.Fatalf("%s %d, -o %s: with views\n%s\nwithout\n%s", w.Mix, w.Seed, form, on, off)
			}
			preempted = preempted || strings.Contains(on, `"victims":`)
		}
	}
	if !preempted {
		t.Error("no cluster saw a preemption")
	}
}

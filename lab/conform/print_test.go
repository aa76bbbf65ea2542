package conform

import (
	"testing"

	"github.com/berth-scheduler/berth/sim/generate"
	"github.com/berth-scheduler/berth/sim/scenario"
)

// Any world can be printed as a story, and played as one it comes to what
// kube-scheduler said at every step.
func TestWorldsAreStories(t *testing.T) {
	for _, mix := range allMixes() {
		t.Run(mix, func(t *testing.T) {
			if mix == "extenders" {
				t.Skip("a story asks no extender")
			}
			for seed := range uint64(6) {
				w, err := generate.Cluster(mix, seed)
				if err != nil {
					t.Fatal(err)
				}
				r := newRun(w)
				if d := r.against(Berth); d != nil {
					t.Fatalf("seed %d: %v", seed, d.Diffs)
				}
				text := tell(&Disagreement{World: w, Steps: r.steps}, true)
				for _, e := range []scenario.Engine{{Seed: 1, Workers: 1}, {Seed: 99, Workers: 3}} {
					if err := play(text, e); err != nil {
						t.Fatalf("seed %d: %+v: %v\n%s", seed, e, err, text)
					}
				}
			}
		})
	}
}

func play(text string, e scenario.Engine) error {
	s, err := scenario.Parse("story.txt", text)
	if err != nil {
		return err
	}
	return s.Play(e)
}

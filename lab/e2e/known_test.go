package e2e

import (
	"path/filepath"
	"testing"

	"github.com/berth-scheduler/berth/lab/cluster"
	"github.com/berth-scheduler/berth/lab/faults"
)

// The faults of kube-scheduler that docs/deviations.md calls R1 to R5
// are there in it and not in Berth. `berth-lab faults` shows the same.
func TestFaultsOfKubeScheduler(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	results, err := faults.Run(t.Context(), t.Output(), faults.Options{Binary: filepath.Join(programs(t), cluster.Berth)})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if !r.Kube.Shown {
			t.Errorf("%s: kube-scheduler does not have it: %s", r.Name, r.Kube.What)
		}
		if r.Berth.Shown {
			t.Errorf("%s: Berth has it: %s", r.Name, r.Berth.What)
		}
	}
}

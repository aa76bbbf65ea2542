package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/sim/replay"
)

// Whole daemons under faults of the network, crashes and lost leases: what each life
// recorded replays to the same effects, step by step. Planted panics are left out, as
// a replay does not plant them.
func TestRecordsAreExact(t *testing.T) {
	lives, decisions := 0, 0
	for seed := uint64(1); seed <= 12; seed++ {
		s := Generate(seed)
		if strings.Contains(Write(s), "fault panic") {
			continue
		}
		dir := t.TempDir()
		if _, err := Run(t, s, Options{RecordTo: dir}); err != nil {
			t.Fatal(err)
		}
		names, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			l, err := recording.Open(filepath.Join(dir, name.Name()))
			if err != nil {
				t.Fatal(err)
			}
			x, err := replay.Exact(l, 1, nil)
			if err != nil || x.Different > 0 {
				t.Errorf("%s, life %s: %v; %d steps of %d are different: %+v", s.File, name.Name(), err, x.Different, x.Steps, x.First)
			}
			lives, decisions = lives+1, decisions+x.Decisions
			_ = l.Close()
		}
	}
	if lives < 10 || decisions < 50 {
		t.Errorf("%d lives with %d decisions say little", lives, decisions)
	}
}

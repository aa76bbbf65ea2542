package conform

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/lab/oracle"
	"github.com/berth-scheduler/berth/sim/generate"
	"github.com/berth-scheduler/berth/sim/written"
)

// Each fix that `berth why` gives for pods of generated clusters holds by
// kube-scheduler's own code: once its changes are made, kube-scheduler places the pod
// on one of the nodes that are best, and the fix names such a one; or it preempts
// just the pods that the fix names. BERTH_FIXES is how many pods are looked at.
func TestFixes(t *testing.T) {
	most := 30
	if n, err := strconv.Atoi(os.Getenv("BERTH_FIXES")); err == nil {
		most = n
	}
	mixes := slices.DeleteFunc(generate.Mixes(), func(m string) bool { return m == "extenders" })
	pods, fixes := 0, 0
	for seed := uint64(1000); pods < most && seed < 1000+uint64(40*most); seed++ {
		w, err := generate.Cluster(mixes[int(seed)%len(mixes)], seed)
		if err != nil {
			t.Fatal(err)
		}
		files, err := written.New(w)
		if err != nil {
			t.Fatal(err)
		}
		inWorld := 0
		for i := range w.Pending {
			c, err := files.Load()
			if err != nil || inWorld == 3 || pods == most {
				break
			}
			name := w.Pending[i].Namespace + "/" + w.Pending[i].Name
			p, err := c.Find(name, "")
			if err != nil {
				t.Fatal(err)
			}
			a := c.Why(p)
			if len(a.Fixes) == 0 {
				continue
			}
			pods++
			inWorld++
			for k := range a.Fixes {
				fixes++
				if err := holds(files, name, &a.Fixes[k]); err != nil {
					text, _ := json.Marshal(a.Fixes[k])
					t.Errorf("%s %d %s: fix %d: %v: %s", w.Mix, seed, name, k, err, text)
				}
			}
		}
	}
	t.Logf("%d pods, %d fixes", pods, fixes)
	if pods < most {
		t.Errorf("only %d pods were found", pods)
	}
}

// holds asks kube-scheduler about the pod once the changes are made.
func holds(files *written.Cluster, pod string, f *fix.Fix) error {
	after, err := files.With(f.Changes)
	if err != nil {
		return err
	}
	c, err := after.Load()
	if err != nil {
		return err
	}
	w, err := after.World(c)
	if err != nil {
		return err
	}
	s, err := oracle.New(w)
	if err != nil {
		return err
	}
	defer s.Stop()
	var asked *v1.Pod
	var nominated []*v1.Pod
	for _, p := range w.Pending {
		switch {
		case p.Namespace+"/"+p.Name == pod:
			asked = p
		case p.Status.NominatedNodeName != "":
			nominated = append(nominated, p)
		}
	}
	rec, err := s.DecideBeside(asked, nominated)
	if err != nil {
		return err
	}
	if len(f.Then.Evicts) == 0 {
		if rec.Result != oracle.Scheduled || !slices.Contains(rec.Best, f.Then.Node) {
			return fmt.Errorf("kube-scheduler: %s, best %v: %s", rec.Result, rec.Best, rec.Message)
		}
		return nil
	}
	same := func(p oracle.Plan) bool { return p.Node == f.Then.Node && slices.Equal(p.Victims, f.Then.Evicts) }
	if rec.Result != oracle.Preempting || !slices.ContainsFunc(rec.Plans, same) && !same(oracle.Plan{Node: rec.Nominated, Victims: rec.Victims}) {
		return fmt.Errorf("kube-scheduler: %s on %s for %v: %s", rec.Result, rec.Nominated, rec.Victims, rec.Message)
	}
	return nil
}

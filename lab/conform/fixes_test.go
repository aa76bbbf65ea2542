package conform

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	plugin "github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/why"
	"github.com/berth-scheduler/berth/lab/oracle"
	"github.com/berth-scheduler/berth/sim/generate"
	"github.com/berth-scheduler/berth/sim/written"
)

// Each fix that `berth why` gives for pods of generated clusters holds by
// kube-scheduler's own code: once its changes are made, kube-scheduler places the pod
// on one of the nodes that are best, and the fix names such a one; or it preempts
// just the pods that the fix names. BERTH_FIXES is how many pods are looked at,
// BERTH_FIXES_SEED the seed of the first cluster.
func TestFixes(t *testing.T) {
	most, first := number("BERTH_FIXES", 60), uint64(number("BERTH_FIXES_SEED", 1000))
	mixes := slices.DeleteFunc(generate.Mixes(), func(m string) bool { return m == "extenders" })
	pods, fixes, stuck, alone := 0, 0, 0, 0
	for seed := first; pods < most && seed < first+uint64(40*most); seed++ {
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
			a := c.Why(t.Context(), p)
			if waits := a.Verdict == why.Waiting || a.Verdict == why.Misconfigured || a.Verdict == why.Gated; !waits || a.NodesTotal == 0 {
				continue
			}
			stuck++
			inWorld++
			if len(a.Fixes) == 0 {
				if helpless(a) {
					alone++
				} else {
					t.Logf("%s %d %s has no fix: %s", w.Mix, seed, name, a.Message)
				}
				continue
			}
			pods++
			for k := range a.Fixes {
				fixes++
				if err := holds(files, name, &a.Fixes[k]); err != nil {
					text, _ := json.Marshal(a.Fixes[k])
					t.Errorf("%s %d %s: fix %d: %v: %s", w.Mix, seed, name, k, err, text)
				}
			}
		}
	}
	t.Logf("%d of %d pods have a fix, of the others no kind of fix can help %d; %d fixes", pods, stuck, alone, fixes)
	if helpable := stuck - alone; pods*100 < helpable*95 {
		t.Errorf("only %d of %d pods have a fix", pods, helpable)
	}
	if pods < most {
		t.Errorf("only %d pods were found", pods)
	}
}

func number(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}

// helpless tells whether no kind of fix can help: the pod is blocked everywhere by
// devices or features of the kubelet that are not there, or by a claim that goes or is
// another pod's.
func helpless(a *why.Answer) bool {
	lasting := func(b why.Blocker) bool {
		return b.Plugin == plugin.DynamicResources || b.Plugin == plugin.NodeDeclaredFeatures ||
			slices.ContainsFunc(b.Reasons, func(r string) bool {
				return strings.HasSuffix(r, "is being deleted") || strings.HasSuffix(r, "(pod is not owner)")
			})
	}
	return !slices.ContainsFunc(a.Groups, func(g why.NodeGroup) bool { return !slices.ContainsFunc(g.Blockers, lasting) })
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

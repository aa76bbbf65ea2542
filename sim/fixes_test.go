package sim_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/why"
	"github.com/berth-scheduler/berth/sim/generate"
	"github.com/berth-scheduler/berth/sim/written"
)

// next is what the next decision on the pod comes to; nil where the cluster is not
// valid.
func next(t *testing.T, w *written.Cluster, pod string) *decision.Decision {
	c, err := w.Load()
	if err != nil {
		return nil
	}
	p, err := c.Find(pod, "")
	if err != nil {
		t.Fatal(err)
	}
	return c.Machine.Assess(decode.Pod(p))
}

// Pods that are stuck for more than one reason at a time, or for one that hides another,
// have fixes, and these hold.
func TestFixesOfHiddenReasons(t *testing.T) {
	for _, test := range []struct {
		why, mix string
		seed     uint64
		pod      string
		one      string // words of one fix
	}{
		{"its affinity is not met, and running pods keep it away", "interpod-preemption", 7026, "default/p-000", "drop the required pod affinity"},
		{"pods in all its domains keep it away", "interpod-preemption", 20061, "default/p-000", "add a node like node-00 in another zone"},
		{"a driver is to make its volume, and makes none", "volumes", 7001, "default/p-000", "bind the claim c-06"},
		{"its volumes are in a zone and a region", "volumes", 9000, "default/p-039", "in zone c of region a"},
		{"its own request and that of a container exceed every node", "resources", 9100, "team-a/p-013", "of container \"c0\" from 100k to"},
	} {
		_, files := generated(t, test.mix, test.seed)
		c, err := files.Load()
		if err != nil {
			t.Fatal(err)
		}
		pod, err := c.Find(test.pod, "")
		if err != nil {
			t.Fatal(err)
		}
		a := c.Why(t.Context(), pod)
		if !slices.ContainsFunc(a.Fixes, func(f fix.Fix) bool { return strings.Contains(f.Summary, test.one) }) {
			t.Errorf("%s (%s %d %s): the fixes are %+v; of one, want %q", test.why, test.mix, test.seed, test.pod, a.Fixes, test.one)
		}
		for i := range a.Fixes {
			if err := holds(t, files, test.pod, &a.Fixes[i]); err != nil {
				t.Errorf("%s: fix %d, %s: %v", test.why, i, a.Fixes[i].Summary, err)
			}
		}
	}
}

// generated is a cluster of a mix, and its files.
func generated(t *testing.T, mix string, seed uint64) (generate.World, *written.Cluster) {
	t.Helper()
	w, err := generate.Cluster(mix, seed)
	if err != nil {
		t.Fatal(err)
	}
	files, err := written.New(w)
	if err != nil {
		t.Fatal(err)
	}
	return w, files
}

// Each fix that is found for pods of generated clusters holds in a cluster that is
// read anew: the pod is placed on the node that it names, or preempts just the pods
// that it names. Without any one of its changes or operations it does not, and a
// request that is lowered by one unit less fits nowhere.
func TestFixesHold(t *testing.T) {
	worlds := 6
	if testing.Short() {
		worlds = 2
	}
	pods, helped, fixes := 0, 0, 0
	for _, mix := range generate.Mixes() {
		if mix == "extenders" {
			continue
		}
		stuck, without := 0, 0
		if only := os.Getenv("BERTH_MIX"); only != "" && only != mix {
			continue
		}
		for seed := range worlds {
			w, files := generated(t, mix, uint64(seed))
			c, err := files.Load()
			if err != nil {
				continue
			}
			inWorld := 0
			for _, p := range w.Pending {
				if inWorld == 4 {
					break
				}
				name := p.Namespace + "/" + p.Name
				api, err := c.Find(name, "")
				if err != nil {
					t.Fatal(err)
				}
				if api.Spec.NodeName == "" {
					if c, err = files.Load(); err != nil { // rows that were added and taken away again move the draw
						t.Fatal(err)
					}
				}
				a := c.Why(t.Context(), api)
				if a.Verdict != why.Waiting && a.Verdict != why.Misconfigured && a.Verdict != why.Gated {
					continue
				}
				if a.NodesTotal == 0 {
					continue // no kind of fix helps
				}
				if devicesOnly(a) {
					continue
				}
				stuck++
				inWorld++
				if len(a.Fixes) == 0 {
					without++
					t.Logf("%s %d %s: no fix: %s: %s %+v", mix, seed, name, a.Verdict, a.Message, a.Groups)
				}
				for i := range a.Fixes {
					fixes++
					if err := holds(t, files, name, &a.Fixes[i]); err != nil {
						text, _ := json.Marshal(a.Fixes[i])
						t.Errorf("%s %d %s: fix %d: %v: %s", mix, seed, name, i, err, text)
					}
				}
			}
		}
		t.Logf("%s: %d stuck, %d without a fix", mix, stuck, without)
		pods, helped = pods+stuck, helped+stuck-without
	}
	t.Logf("%d of %d pods have a fix, %d fixes", helped, pods, fixes)
	if helped*100 < pods*95 {
		t.Errorf("only %d of %d pods have a fix", helped, pods)
	}
}

// devicesOnly tells whether devices that are not there block the pod everywhere: no
// kind of fix makes devices.
func devicesOnly(a *why.Answer) bool {
	return len(a.Fixes) == 0 && !slices.ContainsFunc(a.Groups, func(g why.NodeGroup) bool {
		return !slices.ContainsFunc(g.Blockers, func(b why.Blocker) bool { return b.Plugin == "DynamicResources" })
	})
}

func holds(t *testing.T, files *written.Cluster, pod string, f *fix.Fix) error {
	after, err := files.With(f.Changes)
	if err != nil {
		return err
	}
	d := next(t, after, pod)
	switch {
	case d == nil:
		return fmt.Errorf("the changed cluster is not valid")
	case len(f.Then.Evicts) == 0:
		if d.Result != decision.ResultScheduled || d.Node != f.Then.Node {
			return fmt.Errorf("the pod is %s on %q", d.Result, d.Node)
		}
	default:
		var victims []string
		for _, v := range d.Victims {
			victims = append(victims, v.String())
		}
		if d.Result != decision.ResultPreempting || d.NominatedNode != f.Then.Node || !slices.Equal(victims, f.Then.Evicts) {
			return fmt.Errorf("the pod is %s on %q, for %v", d.Result, d.NominatedNode, victims)
		}
	}
	return minimal(t, files, pod, f)
}

// minimal tells what can be left out.
func minimal(t *testing.T, files *written.Cluster, pod string, f *fix.Fix) error {
	placed := func(changes []fix.Change) bool {
		after, err := files.With(changes)
		if err != nil {
			return false
		}
		d := next(t, after, pod)
		return d != nil && (d.Result == decision.ResultScheduled || len(f.Then.Evicts) > 0 && d.Result == decision.ResultPreempting)
	}
	for i := range f.Changes {
		if placed(slices.Delete(slices.Clone(f.Changes), i, i+1)) {
			return fmt.Errorf("change %d is not needed", i)
		}
		for j, op := range f.Changes[i].Patch {
			changes := slices.Clone(f.Changes)
			changes[i].Patch = slices.Delete(slices.Clone(f.Changes[i].Patch), j, j+1)
			keeps := strings.HasSuffix(op.Path, "/priorityClassName") || strings.Contains(op.Path, "/limits/") || strings.HasSuffix(op.Path, "/containerPort")
			if !keeps && placed(changes) {
				return fmt.Errorf("operation %d of change %d is not needed", j, i)
			}
			if more, ok := oneMore(op); ok {
				changes[i].Patch = slices.Clone(f.Changes[i].Patch)
				changes[i].Patch[j] = more
				if placed(changes) {
					return fmt.Errorf("operation %d of change %d lowers by more than it needs to", j, i)
				}
			}
		}
	}
	return nil
}

// oneMore is the operation with one unit more.
func oneMore(op fix.Op) (fix.Op, bool) {
	value, is := op.Value.(string)
	name, request := strings.CutPrefix(op.Path[strings.LastIndex(op.Path[:strings.LastIndex(op.Path, "/")+1-1], "/")+1:], "requests/")
	if !is || !request {
		return op, false
	}
	q := quantityOf(value)
	switch {
	case name == "cpu":
		q.Set(0)
		old := quantityOf(value)
		q.SetMilli(old.MilliValue() + 1)
	case strings.HasPrefix(name, "hugepages-"):
		page := quantityOf(strings.TrimPrefix(name, "hugepages-"))
		q.Add(page)
	default:
		q.Set(q.Value() + 1)
	}
	op.Value = q.String()
	return op, true
}

func quantityOf(s string) resource.Quantity { return resource.MustParse(s) }

package conform

import (
	"context"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/lab/oracle"
	"github.com/berth-scheduler/berth/sim/generate"
	"github.com/berth-scheduler/berth/sim/scenario"
)

// broken is kube-scheduler with a fault in what it says.
type broken struct {
	Side
	decide  func(oracle.Record) oracle.Record
	requeue func([]bool) []bool
	order   func([]*v1.Pod) []*v1.Pod
}

func (b broken) Order(pods []*v1.Pod) ([]*v1.Pod, error) {
	order, err := b.Side.Order(pods)
	if b.order != nil {
		order = b.order(order)
	}
	return order, err
}

func (b broken) Decide(p *v1.Pod) oracle.Record {
	rec := b.Side.Decide(p)
	if b.decide != nil {
		rec = b.decide(rec)
	}
	return rec
}

func (b broken) Apply(c generate.Change, waiting []oracle.Rejected) ([]bool, error) {
	requeued, err := b.Side.Apply(c, waiting)
	if b.requeue != nil {
		requeued = b.requeue(requeued)
	}
	return requeued, err
}

// Spared has a requeue missed only where the pod fits, as Berth leaves out the others.
func (b broken) Spared(types.UID) bool { return true }

func TestMain(m *testing.M) {
	silence()
	debug.SetGCPercent(400) // each world makes two schedulers and drops them
	m.Run()
}

// kube-scheduler on both sides gives no disagreement.
func TestKubeSchedulerAgreesWithItself(t *testing.T) {
	for _, mix := range allMixes() {
		counts, apart, err := playAll(mix, nil, 1, 60, Upstream, func(int) {})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(summary(mix, counts, len(apart), 1))
		for _, d := range apart {
			if strings.HasPrefix(d.Diffs[0], "needed requeue") {
				continue // a requeue that kube-scheduler itself misses
			}
			t.Errorf("%s, seed %d: %s", mix, d.World.Seed, strings.Join(d.Diffs, "; "))
		}
		if counts.Failed > 0 && mix != "extenders" && !strings.HasPrefix(mix, "device") { // there some fail, as meant
			t.Errorf("%s: %d decisions end in an error: the worlds are at fault", mix, counts.Failed)
		}
	}
}

// Each planted fault is a disagreement, and its case is shrunk to few objects.
func TestFaultsAreFoundAndShrunk(t *testing.T) {
	for _, tt := range []struct {
		name, mix, says string
		fault           broken
	}{
		{"a score off by one", "taints", "score of TaintToleration", broken{decide: func(r oracle.Record) oracle.Record {
			for i := range r.Nodes {
				for j, s := range r.Nodes[i].Scores {
					if s.Plugin == "TaintToleration" && s.Score > 0 && s.Score < 100 {
						r.Nodes[i].Scores[j].Score--
					}
				}
			}
			return r
		}}},
		{"another reason", "resources", "first blocker", broken{decide: func(r oracle.Record) oracle.Record {
			for i := range r.Nodes {
				r.Nodes[i].Reasons = slices.DeleteFunc(r.Nodes[i].Reasons, func(s string) bool { return s == "Insufficient memory" })
			}
			return r
		}}},
		{"a message cut", "gates", "message", broken{decide: func(r oracle.Record) oracle.Record {
			r.Message = strings.TrimSuffix(r.Message, "]")
			return r
		}}},
		{"a choice that is not the best", "images", "choice", broken{decide: func(r oracle.Record) oracle.Record {
			for _, n := range r.Nodes {
				if n.Feasible && !slices.Contains(r.Best, n.Name) {
					r.Node = n.Name
				}
			}
			return r
		}}},
		{"a panic", "ports", "panic", broken{decide: func(r oracle.Record) oracle.Record {
			if r.Result == oracle.Unschedulable {
				panic("an invariant does not hold")
			}
			return r
		}}},
		{"first come, last served", "gates", "queue order", broken{order: func(pods []*v1.Pod) []*v1.Pod {
			slices.Reverse(pods)
			return pods
		}}},
		{"never requeueing", "resources", "requeue", broken{requeue: func(w []bool) []bool { return make([]bool, len(w)) }}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start := func(ctx context.Context, w generate.World) (Side, error) {
				side, err := Upstream(ctx, w)
				fault := tt.fault
				fault.Side = side
				return fault, err
			}
			_, apart, err := playAll(tt.mix, nil, 1, 10, start, func(int) {})
			if err != nil || len(apart) == 0 {
				t.Fatalf("not found (%v)", err)
			}
			d := Shrink(apart[0], start)
			var out strings.Builder
			if err := Print(&out, d); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(d.Diffs[0], tt.says) {
				t.Errorf("blames %q, want %q", d.Diffs[0], tt.says)
			}
			w := d.World
			if len(w.Nodes) > 3 || len(w.Pending) > 2 || len(w.Changes) > 1 {
				t.Errorf("%d nodes, %d pods, %d changes are left:\n%s", len(w.Nodes), len(w.Pending), len(w.Changes), out.String())
			}
			t.Logf("%s", out.String())
			if err := play(out.String(), scenario.Engine{Seed: 7, Workers: 1}); err != nil {
				t.Errorf("Berth, which has no such fault: %v\n%s", err, out.String())
			}
		})
	}
}

// Seeds are a number, or a range that does not go down.
func TestSpan(t *testing.T) {
	for _, tt := range []struct {
		in          string
		first, last uint64
		ok          bool
	}{{"1-5", 1, 5, true}, {"7", 7, 7, true}, {"5-1", 0, 0, false}, {"x", 0, 0, false}, {"", 0, 0, false},
		{"1-", 0, 0, false}, {"-5", 0, 0, false}, {"0-18446744073709551615", 0, 0, false}} {
		first, last, err := span(tt.in)
		if first != tt.first && tt.ok || last != tt.last && tt.ok || (err == nil) != tt.ok {
			t.Errorf("%q: %d-%d, %v", tt.in, first, last, err)
		}
	}
}

// A wrong flag or argument is an error that says what is allowed.
func TestCommand(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string // of the error; "" none
	}{
		{[]string{"--mix", "bananas"}, `--mix: no mix "bananas" (there are all, device-preemption, devices, extenders, features, `},
		{[]string{"--seeds", "9-1"}, `--seeds "9-1": want A-B`},
		{[]string{"--seeds", "lots"}, `--seeds "lots": want A-B`},
		{[]string{"taints"}, "unknown command"},
		{[]string{"--feature-gates", "Bananas=true"}, "--feature-gates: unrecognized feature gate: Bananas"},
		{[]string{"--feature-gates", "GenericWorkload=true,DRAWorkloadResourceClaims=true"}, "--feature-gates: feature gate DRAWorkloadResourceClaims=true is not supported: "},
		{[]string{"--feature-gates", "NodeDeclaredFeatures"}, "--feature-gates: "},
		{[]string{"--feature-gates", "StorageCapacityScoring=false", "--mix", "taints,ports", "--seeds", "3"}, ""},
		{[]string{"--mix", "taints,ports", "--seeds", "3"}, ""},
	} {
		cmd := NewCommand()
		var out strings.Builder
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SilenceUsage = true
		cmd.SetArgs(tt.args)
		err := cmd.Execute()
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%v: got %v, want %s", tt.args, err, tt.want)
		}
		if err == nil && strings.Count(out.String(), "\n") != 2 {
			t.Errorf("%v: got %s", tt.args, out.String())
		}
	}
}

// Each disagreement becomes a file, and the run fails.
func TestOut(t *testing.T) {
	start := func(ctx context.Context, w generate.World) (Side, error) {
		side, err := Upstream(ctx, w)
		return broken{Side: side, requeue: func(w []bool) []bool { return make([]bool, len(w)) }}, err
	}
	var out strings.Builder
	c := comparison{mixes: []string{"gates"}, first: 1, last: 6, berth: start, out: &out, progress: &out,
		dir: filepath.Join(t.TempDir(), "found")}
	if err := c.run(); err == nil || !strings.Contains(err.Error(), "disagree in ") {
		t.Errorf("got %v", err)
	}
	files, err := filepath.Glob(filepath.Join(c.dir, "gates-*.txt"))
	if err != nil || len(files) == 0 || len(files) > maxShown || !strings.Contains(out.String(), files[0]) {
		t.Errorf("%v, %v: %s", files, err, out.String())
	}
}

package shadow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/decode"
)

// A pod that both would place on the same node is counted, and nothing is logged.
func TestSameNode(t *testing.T) {
	w := newWorld(t, nil)
	w.node("small", 8)
	w.node("large", 16)
	w.pod("p", 1)
	w.bound("p", "large")
	w.counted(Same, "", 1)
	if w.log.Len() > 0 {
		t.Errorf("logged %s", w.log.String())
	}
}

// Another node of the same score counts as a tie.
func TestNodeOfTheSameScore(t *testing.T) {
	w := newWorld(t, nil)
	w.node("a", 8)
	w.node("b", 8)
	w.pod("p", 1)
	other := map[string]string{"a": "b", "b": "a"}[w.m.Compare(decode.Pod(w.pods["p"]), "").Node]
	w.bound("p", other)
	w.counted(Tie, "", 1)
}

// A node that fits and scores less is told of with the plugin that makes the
// difference. Where the live scheduler looks at every node the sample is no excuse.
func TestLowerScore(t *testing.T) {
	w := newWorld(t, nil)
	w.node("small", 4)
	w.node("large", 16)
	w.pod("p", 1)
	w.bound("p", "small")
	w.counted(Lower, "NodeResourcesFit", 0) // until it is known what came around it
	w.after(window)
	w.counted(Lower, "NodeResourcesFit", 1)
	w.logged(`"pod"="default/p"`, `"node"="small"`, `"berthNode"="large"`, `"result"="lower"`, "NodeResourcesFit")
}

// A worse node that kube-scheduler may take because it looks at a sample counts as
// sampled.
func TestSampledNode(t *testing.T) {
	w := newWorld(t, nil)
	for i := range 150 { // of which kube-scheduler looks for 100
		w.node(fmt.Sprint("small", i), 4)
	}
	w.node("large", 16)
	w.pod("p", 1)
	w.bound("p", "small7")
	w.after(window)
	w.counted(Sampled, "NodeResourcesFit", 1)
	w.logged(`"result"="sampled"`, `"feasibleNodes"=151`)
}

// A node that does not fit counts as infeasible under the plugin that rejects it, with
// its reason.
func TestNodeThatDoesNotFit(t *testing.T) {
	w := newWorld(t, nil)
	w.node("tainted", 16, func(n *v1.Node) {
		n.Spec.Taints = []v1.Taint{{Key: "gpu", Value: "yes", Effect: v1.TaintEffectNoSchedule}}
	})
	w.node("free", 16)
	w.pod("p", 1)
	w.bound("p", "tainted")
	w.after(window)
	w.counted(Infeasible, "TaintToleration", 1)
	w.logged(`"node"="tainted"`, `"berthNode"="free"`, "untolerated taint")
	if last := w.s.Differences(); len(last) != 1 || last[0].Pod != "default/p" || last[0].Node != "tainted" || last[0].BerthNode != "free" || !strings.Contains(strings.Join(last[0].Reasons, ""), "untolerated taint") {
		t.Errorf("%+v", last)
	}
}

// A node that is not known counts as infeasible under no plugin.
func TestNodeThatIsNotKnown(t *testing.T) {
	w := newWorld(t, nil)
	w.node("free", 16)
	w.pod("p", 1)
	w.bound("p", "new")
	w.after(window)
	w.counted(Infeasible, "", 1)
	w.logged("the node is not known")
}

// A bound pod that fits no node counts as unschedulable under the plugin that rejects
// it.
func TestPodThatFitsNoNode(t *testing.T) {
	w := newWorld(t, nil)
	w.node("a", 4)
	w.pod("p", 8)
	w.bound("p", "a")
	w.after(window)
	w.counted(Unschedulable, "NodeResourcesFit", 1)
	w.logged(`"result"="unschedulable"`, "Insufficient cpu")
}

// A pod that pods were preempted for takes their node; nothing is left to choose.
func TestNominatedPod(t *testing.T) {
	w := newWorld(t, nil)
	w.node("small", 4)
	w.node("large", 16)
	w.pod("p", 1, func(p *v1.Pod) { p.Status.NominatedNodeName = "small" })
	w.bound("p", "small")
	w.counted(Nominated, "", 1)

	// Where it goes elsewhere, the best node is asked for.
	w.pod("q", 1, func(p *v1.Pod) { p.Status.NominatedNodeName = "small" })
	w.bound("q", "large")
	w.counted(Same, "", 1)
}

// The live scheduler decided on a, then on b. The watch shows b first.
func TestBindingsOutOfOrder(t *testing.T) {
	w := newWorld(t, nil)
	w.node("n1", 16)
	w.node("n2", 14)
	w.pod("a", 6)
	w.pod("b", 6)
	w.bound("b", "n2") // n1 is the best, as long as a is not there
	w.now = w.now.Add(window / 2)
	w.bound("a", "n1")
	w.after(window)
	w.counted(Stale, "NodeResourcesFit", 1)
	w.counted(Same, "", 1)
	w.counted(Lower, "NodeResourcesFit", 0)
	if w.log.Len() > 0 {
		t.Errorf("logged %s", w.log.String())
	}
	if err := w.m.Verify(); err != nil {
		t.Error(err)
	}
}

// The same, where the order of arrival tells nothing against the choice.
func TestBindingsInOrderAreNoExcuse(t *testing.T) {
	w := newWorld(t, nil)
	w.node("n1", 16)
	w.node("n2", 14)
	w.pod("a", 6)
	w.pod("b", 6)
	w.bound("a", "n2")
	w.bound("b", "n1")
	w.after(window)
	w.counted(Lower, "NodeResourcesFit", 1)
	w.counted(Stale, "NodeResourcesFit", 0)
}

// In the order of decisions more nodes fitted than kube-scheduler looks for.
func TestSampledInTheOrderOfDecisions(t *testing.T) {
	w := newWorld(t, nil)
	for i := range 101 {
		w.node(fmt.Sprint("small", i), 4)
	}
	w.node("large", 16)
	w.pod("a", 1)
	for i := range 3 {
		w.pod(fmt.Sprint("b", i), 4)
	}
	for i := range 3 {
		w.bound(fmt.Sprint("b", i), fmt.Sprint("small", i))
	}
	w.bound("a", "small7") // 99 nodes are left
	w.after(window)
	w.logged(`"pod"="default/a"`, `"result"="sampled"`, `"feasibleNodes"=102`)
}

// A pod of higher priority is decided on before one that came earlier.
func TestOrderIsByPriority(t *testing.T) {
	w := newWorld(t, nil)
	w.node("n1", 16)
	w.node("n2", 14)
	w.pod("a", 6)
	priority := int32(10)
	w.pod("b", 6, func(p *v1.Pod) { p.Spec.Priority = &priority })
	w.bound("a", "n2")
	w.bound("b", "n1")
	w.after(window)
	w.counted(Stale, "NodeResourcesFit", 1)
}

// The live scheduler had not yet seen that a pod was gone.
func TestPodGoneJustBefore(t *testing.T) {
	w := newWorld(t, nil)
	w.node("n1", 16)
	w.node("n2", 14)
	w.pod("x", 6)
	w.bound("x", "n1")
	w.after(time.Minute)
	w.pod("p", 6)
	w.gone("x")
	w.bound("p", "n2")
	w.after(window)
	w.counted(Stale, "NodeResourcesFit", 1)

	// Seconds ago is no excuse.
	w.after(time.Minute)
	w.gone("p")
	w.pod("y", 6)
	w.bound("y", "n1")
	w.after(time.Minute)
	w.gone("y")
	w.pod("q", 6)
	w.after(2 * window)
	w.bound("q", "n2")
	w.after(window)
	w.counted(Lower, "NodeResourcesFit", 1)
	if err := w.m.Verify(); err != nil {
		t.Error(err)
	}
}

// An extender may say anything, and is not asked.
func TestPodOfAnExtender(t *testing.T) {
	w := newWorld(t, func(o *machine.Options, _ *Options) {
		o.Extenders = []machine.Extender{{Name: "x", Filter: true, Limit: 1}}
	})
	w.node("small", 4)
	w.node("large", 16)
	w.pod("p", 1)
	api := decode.Pod(w.pods["p"])
	api.API = w.pods["p"]
	w.step(machine.PodSet{Pod: api})
	w.bound("p", "small")
	w.counted(NotCompared, "", 1)
}

// Pods of other schedulers, pods that come with a node, and what happens before the
// cluster is known, are no choices of the live scheduler.
func TestWhatIsNoChoice(t *testing.T) {
	synced := false
	w := newWorld(t, func(_ *machine.Options, o *Options) { o.Synced = func() bool { return synced } })
	w.node("small", 4)
	w.pod("early", 1)
	w.bound("early", "small")
	synced = true
	w.node("large", 16)
	w.pod("foreign", 1, func(p *v1.Pod) { p.Spec.SchedulerName = "other" })
	w.bound("foreign", "small")
	w.pod("static", 1, func(p *v1.Pod) { p.Spec.NodeName = "small" })
	w.after(window)
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "berth_shadow_choices_total" {
			t.Errorf("counted: %v", f)
		}
	}
}

// A pod that the live scheduler leaves waiting though it fits is told of once, and
// counted until it is bound.
func TestPodThatCouldBePlaced(t *testing.T) {
	w := newWorld(t, nil)
	placeable := func(want float64) {
		t.Helper()
		got, err := testutil.GetGaugeMetricValue(w.s.metrics.placeable.WithLabelValues(v1.DefaultSchedulerName))
		if err != nil || got != want {
			t.Errorf("%v pods could be placed (%v), want %v", got, err, want)
		}
		if _, found := w.s.Found(); found != int(want) {
			t.Errorf("found %d pods that could be placed, want %v", found, want)
		}
	}
	w.node("a", 4)
	w.pod("fits", 1)
	w.pod("large", 8)
	w.after(waitTimeout / 2)
	placeable(0)
	w.after(waitTimeout / 2)
	placeable(1)
	w.logged("leaves a pod pending that Berth would place", `"pod"="default/fits"`, `"waits"="10s"`)
	w.after(7 * time.Second)
	if n := strings.Count(w.log.String(), "leaves a pod pending"); n != 1 {
		t.Errorf("told %d times", n)
	}
	w.bound("fits", "a")
	placeable(0)
	seconds, err := testutil.GetHistogramMetricValue(w.s.metrics.placeableSeconds.WithLabelValues(v1.DefaultSchedulerName))
	if err != nil || seconds != 7 {
		t.Errorf("it could be placed for %v s (%v), want 7", seconds, err)
	}
	w.node("b", 16)
	w.after(reviewEvery)
	w.after(reviewEvery)
	placeable(1)
	w.gone("large")
	placeable(0)
	if len(w.s.waiting) > 0 {
		t.Errorf("%d pods are remembered", len(w.s.waiting))
	}
}

// A pod that went after the choice was there when it was made, and one that came since
// was not.
func TestPodsThatCameAndWentSince(t *testing.T) {
	w := newWorld(t, nil)
	w.node("n1", 16)
	w.node("n2", 14)
	w.pod("x", 6)
	w.bound("x", "n1")
	w.after(time.Minute)
	w.pod("a", 6)
	w.pod("p", 6)
	w.pod("late", 6)
	w.bound("p", "n1")       // best is n2, until a is known to be there
	w.bound("a", "n2")       // decided on before p: then both are taken, and n1 is better
	w.after(2 * reportEvery) // and then
	w.gone("x")              // makes room on n1
	w.bound("late", "n1")    // which is taken again
	w.after(window)          // until p is looked at
	w.counted(Stale, "NodeResourcesFit", 1)
	w.counted(Lower, "NodeResourcesFit", 0)
	w.after(3 * window)
	if len(w.s.recent)+len(w.s.placements)+len(w.s.held) > 0 {
		t.Errorf("%d placements and %d differences are remembered", len(w.s.recent), len(w.s.held))
	}
	if err := w.m.Verify(); err != nil {
		t.Error(err)
	}
}

// What waits is looked at a few at a time, and nobody is left out.
func TestManyPodsWait(t *testing.T) {
	w := newWorld(t, nil)
	w.node("a", 4)
	for i := range 3*reviewAtOnce + 1 {
		w.pod(fmt.Sprint("p", i), 1)
	}
	w.now = w.now.Add(waitTimeout)
	for range 4 {
		w.after(reviewEvery)
	}
	got, err := testutil.GetGaugeMetricValue(w.s.metrics.placeable.WithLabelValues(v1.DefaultSchedulerName))
	if err != nil || got != 3*reviewAtOnce+1 {
		t.Errorf("%v pods could be placed (%v)", got, err)
	}
}

// The log has a bound; what is left out is counted.
func TestLogIsLimited(t *testing.T) {
	w := newWorld(t, nil)
	w.twoNodes()
	differ := func(from, to int) {
		for i := from; i < to; i++ {
			w.pod(fmt.Sprint("p", i), 1)
			w.bound(fmt.Sprint("p", i), "small")
		}
		w.after(window)
	}
	differ(0, 3*linesPerSecond)
	if n := strings.Count(w.log.String(), "\n"); n != linesPerSecond {
		t.Errorf("%d lines", n)
	}
	differ(3*linesPerSecond, 3*linesPerSecond+1)
	w.logged(`"linesDropped"=20`)
	w.counted(Lower, "TaintToleration", 3*linesPerSecond+1)
}

// More differences than are kept are told of at once.
func TestManyDifferences(t *testing.T) {
	w := newWorld(t, func(o *machine.Options, _ *Options) { o.Check = false }) // it is slow
	w.twoNodes()
	for i := range mostHeld + 3 {
		w.pod(fmt.Sprint("p", i), 1)
		w.bound(fmt.Sprint("p", i), "small")
	}
	w.counted(Lower, "TaintToleration", 3)
	if len(w.s.held) != mostHeld {
		t.Errorf("%d differences are kept", len(w.s.held))
	}
}

// The file has each difference as a line, and does not grow without bound.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shadow.jsonl")
	w := newWorld(t, func(_ *machine.Options, o *Options) {
		f, err := OpenFile(path, o.Logger)
		if err != nil {
			t.Fatal(err)
		}
		f.limit = 1000
		o.File = f
	})
	w.twoNodes()
	for i := range 10 {
		w.pod(fmt.Sprint("p", i), 1)
		w.bound(fmt.Sprint("p", i), "small")
		w.after(window)
	}
	for _, name := range []string{path, path + ".1"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) == 0 || len(data) > 1000 {
			t.Errorf("%s has %d bytes", name, len(data))
		}
		for line := range bytes.Lines(data) {
			var r Record
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(err)
			}
			if r.Node != "small" || r.BerthNode != "large" || r.Result != Lower || r.Score >= r.BestScore || len(r.Scores) == 0 {
				t.Errorf("%+v", r)
			}
		}
	}
}

// What a binding costs on 5,000 nodes: the pod comes, waits and is bound, to a node that
// is not among the best. Looking at it again is part of it.
func BenchmarkBinding(b *testing.B) {
	w := newWorld(b, func(o *machine.Options, _ *Options) { o.Check = false })
	for i := range 5000 {
		w.node(fmt.Sprint("n", i), 64+int64(i%3))
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		name := fmt.Sprint("p", i)
		w.pod(name, 1)
		w.bound(name, fmt.Sprint("n", i%2000*2%5000))
		w.now = w.now.Add(2 * time.Millisecond) // 500 a second
		i++
	}
}

// A file that cannot be written is said once, and costs nothing else.
func TestFileThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shadow.jsonl")
	w := newWorld(t, func(_ *machine.Options, o *Options) {
		f, err := OpenFile(path, o.Logger)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.file.Close(); err != nil {
			t.Fatal(err)
		}
		o.File = f
	})
	w.twoNodes()
	for i := range 3 {
		w.pod(fmt.Sprint("p", i), 1)
		w.bound(fmt.Sprint("p", i), "small")
		w.after(window)
	}
	w.counted(Lower, "TaintToleration", 3)
	if n := strings.Count(w.log.String(), "Failed to write"); n != 1 {
		t.Errorf("said %d times", n)
	}
	if _, err := OpenFile(filepath.Join(path, "no"), w.s.options.Logger); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file in a file: %v", err)
	}
}

// Where the file could not be renamed once it goes on when it can be.
func TestFileGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "found")
	f, err := OpenFile(path, klog.Background())
	if err != nil {
		t.Fatal(err)
	}
	f.limit = 300
	inTheWay := filepath.Join(path+".1", "full") // a directory that is not empty
	if err := os.MkdirAll(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		f.write(&Record{})
	}
	if text, err := os.ReadFile(path); err != nil || len(text) > int(f.limit) || !f.failed {
		t.Errorf("%d bytes, %v; it failed: %t", len(text), err, f.failed)
	}
	if err := os.RemoveAll(path + ".1"); err != nil {
		t.Fatal(err)
	}
	f.write(&Record{})
	if text, err := os.ReadFile(path + ".1"); err != nil || len(text) == 0 || f.failed {
		t.Errorf("%q, %v; it failed: %t", text, err, f.failed)
	}
}

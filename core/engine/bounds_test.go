package engine_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/decode"
)

// Under bad input answers stay those of a fresh evaluation, and what is kept
// stays within its bound. Bounds are counted, not timed.

// trial is a soak without events: what happens is up to the test.
func trial(t *testing.T, mix string) *soak {
	t.Helper()
	w := newSoak(t, rand.New(rand.NewPCG(7, 7)), mix)
	w.sum = &soaked{}
	for range 12 { // whatever cluster was drawn
		w.SetNode(w.stock.node(w.name()))
	}
	return w
}

// bounded: views take no more rows than they may, few are on trial, and partitions take no
// more bytes than they may.
func (w *soak) bounded(t *testing.T, e *engine.Engine, budget int) {
	t.Helper()
	views, trials, bytes, seen := e.Kept()
	if rows := views * (engine.FixedRows + w.Rows()); rows > budget && views > 1 {
		t.Fatalf("%d views count for %d rows, want at most %d", views, rows, budget)
	}
	if keeping := e.WithKept(); keeping > views {
		t.Fatalf("plugins keep something for %d views, %d are kept", keeping, views)
	}
	if trials > 34 || bytes > 1<<20+256*w.Rows() {
		t.Fatalf("%d views on trial, %d bytes of partitions", trials, bytes)
	}
	if seen > engine.SeenClasses {
		t.Fatalf("%d classes are remembered, want at most %d", seen, engine.SeenClasses)
	}
}

// Every pod is of a class of its own, and comes by up to four times.
func TestClassesWithoutEnd(t *testing.T) {
	w := trial(t, "all")
	budget := 40 * (engine.FixedRows + w.Rows())
	w.kept.SetBudget(budget)
	for i := range 1500 {
		p := w.draw("")
		setIn(&p.Spec.Containers[0].Resources.Requests, v1.ResourceCPU, *resource.NewMilliQuantity(int64(i%700), resource.DecimalSI))
		p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: fmt.Sprint("class-", i), Operator: v1.TolerationOpExists})
		w.redraw(i%len(w.pool), p)
		for range 1 + i%4 {
			if o := w.kept.Decide(engine.For(w.profiles[0], w.pool[i%len(w.pool)]), nil); o.Rejected == nil {
				o.Kept("anything")
			}
			w.bounded(t, w.kept, budget)
		}
		if w.decide(t); i%50 == 0 {
			w.check(t)
		}
		w.bounded(t, w.kept, budget)
		w.bounded(t, w.tight, budget)
	}
}

// Classes with endless bytes count for as much as they hold.
func TestClassesWithLongSignatures(t *testing.T) {
	w := trial(t, "all")
	w.kept.SetBudget(1 << 20)
	for i := range 40 {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "long", UID: types.UID(fmt.Sprint(i))}, Spec: v1.PodSpec{SchedulerName: w.profiles[0].Name,
			Containers: []v1.Container{{Name: "c"}}, NodeSelector: map[string]string{"a": fmt.Sprint(i)}, Tolerations: []v1.Toleration{{Key: strings.Repeat("x", 100_000), Operator: v1.TolerationOpExists}}}}
		for range 3 {
			w.kept.Decide(engine.For(w.profiles[0], decode.Pod(p)), nil)
		}
		if views, _, _, _ := w.kept.Kept(); views > 11 {
			t.Fatalf("%d views with 100 KB each, in a budget of 2^20", views)
		}
	}
	if views, _, _, _ := w.kept.Kept(); views < 5 {
		t.Errorf("%d views: there is room for more", views)
	}
}

// What is remembered of classes without a view has a bound, too.
func TestSeenClasses(t *testing.T) {
	e := engine.New(table.New(), 1, 1)
	for i := range 3 * engine.SeenClasses {
		e.See(binary.AppendUvarint(nil, uint64(i)))
	}
	if _, _, _, seen := e.Kept(); seen > engine.SeenClasses {
		t.Errorf("%d classes are remembered, want at most %d", seen, engine.SeenClasses)
	}
}

// A node flaps a thousand times in a row: gone and back, ready and not.
func TestFlappingNodeIsExact(t *testing.T) {
	for _, mix := range []string{"all", "spread", "interpod"} {
		w := trial(t, mix)
		name := w.name()
		n := w.stock.node(name)
		not := *n
		not.Unschedulable = true
		not.Taints = append(slices.Clone(n.Taints), v1.Taint{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoExecute})
		rows := w.Rows()
		for i := range 1000 {
			switch i % 4 {
			case 0:
				w.SetNode(n)
			case 1:
				w.SetNode(&not)
			default:
				w.RemoveNode(name)
			}
			if i%3 == 0 {
				w.decide(t)
			}
		}
		w.check(t)
		if w.Rows() > rows+1 {
			t.Errorf("%s: %d rows, there were %d", mix, w.Rows(), rows)
		}
		views, _, _, _ := w.kept.Kept()
		if most := 2 * len(w.pool); views > most { // two profiles
			t.Errorf("%s: %d views for %d classes", mix, views, most)
		}
	}
}

// Ten thousand label sets pass over the nodes, each with a zone of its own.
func TestLabelSetsAreExact(t *testing.T) {
	for _, mix := range []string{"spread", "interpod"} {
		w := trial(t, mix)
		for i := range 10_000 {
			n := *w.stock.node(w.name())
			n.Labels[v1.LabelTopologyZone] = fmt.Sprint("zone-", i)
			n.Labels[fmt.Sprint("label-", i)] = "there"
			w.SetNode(&n)
			if i%20 == 0 {
				w.decide(t)
			}
		}
		w.check(t)
	}
}

// spreadOver are pods that every node's own domain, and the one domain of all
// nodes, decide on.
func spreadOver(keys ...string) []*v1.Pod {
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	var pods []*v1.Pod
	for _, key := range keys {
		for _, when := range []v1.UnsatisfiableConstraintAction{v1.DoNotSchedule, v1.ScheduleAnyway} {
			p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Labels: map[string]string{"app": "web"}}}
			p.Spec.Containers = []v1.Container{{Name: "c", Image: "i"}}
			q := p.DeepCopy()
			p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{TopologyKey: key, MaxSkew: 1, WhenUnsatisfiable: when, LabelSelector: app}}
			term := v1.PodAffinityTerm{TopologyKey: key, LabelSelector: app}
			q.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{}}
			if when == v1.DoNotSchedule {
				q.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = []v1.PodAffinityTerm{term}
			} else {
				q.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []v1.WeightedPodAffinityTerm{{Weight: 7, PodAffinityTerm: term}}
			}
			pods = append(pods, p, q)
		}
	}
	return pods
}

// A topology key with a domain for each node, other than the host name, and
// one with a single domain for all.
func TestExtremeTopologies(t *testing.T) {
	w := trial(t, "spread")
	w.pods = spreadOver("one-each", "one-for-all", v1.LabelHostname)
	for i := range w.pool {
		w.redraw(i, w.draw(""))
	}
	for i := range 300 {
		name := fmt.Sprint("wide-", i)
		w.SetNode(&object.Node{Name: name, AllowedPods: 110, Labels: map[string]string{v1.LabelHostname: name, "one-each": name, "one-for-all": "all"}})
	}
	for i := range 600 {
		w.otherClass(t)
		w.decide(t)
		if i%3 == 0 {
			w.removePod(t)
		}
	}
	w.check(t)
}

// Between two looks at a view its rows change hands: nodes go, others take
// their rows, pods are placed on both.
func TestRowsChangeHands(t *testing.T) {
	for _, mix := range []string{"all", "spread", "interpod", "images"} {
		w := trial(t, mix)
		for i := range 400 {
			for range 1 + w.IntN(3) {
				gone := w.name()
				for _, p := range slices.Clone(w.placed) { // or the row would wait for them
					if p.NodeName == gone {
						w.RemovePod(p.UID)
						w.placed = slices.DeleteFunc(w.placed, func(q *object.Pod) bool { return q == p })
					}
				}
				w.RemoveNode(gone)
				w.names = append(slices.DeleteFunc(w.names, func(n string) bool { return n == gone }), fmt.Sprint("new-", i, "-", w.IntN(9)))
				w.place(w.stock.pod(w.names[len(w.names)-1]))
				w.SetNode(w.stock.node(w.names[len(w.names)-1]))
				w.movePod(t)
			}
			w.decide(t)
			w.decide(t)
		}
		w.check(t)
		if w.Rows() > 2*len(w.names)+13 {
			t.Errorf("%s: %d rows for %d nodes", mix, w.Rows(), len(w.names))
		}
	}
}

// More happens between two looks at a view than any journal holds.
func TestLongAbsence(t *testing.T) {
	for _, mix := range []string{"all", "spread", "interpod", "interpod-preemption"} {
		w := trial(t, mix)
		for range 3 {
			for range 40 {
				w.place(w.stock.pod(w.name()))
			}
			w.storm(t)
			for range 20 {
				w.removePod(t)
				w.decide(t)
			}
		}
		w.check(t)
	}
}

// Columns of a resource that nobody has any more become another's. What knew
// them by the old name does not read the new one's.
func TestColumnsChangeHands(t *testing.T) {
	w := trial(t, "resources")
	tab := table.New()
	offer := func(name, resource string) {
		n := &object.Node{Name: name, AllowedPods: 110}
		n.Allocatable.Scalars = append(n.Allocatable.Scalars, decode.Node(&v1.Node{Status: v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourceName(resource): resourceOf(4)}}}).Allocatable.Scalars...)
		tab.SetNode(n)
	}
	p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}}
	setIn(&p.Spec.Containers[0].Resources.Requests, "example.com/first", resourceOf(1))
	pod, e := decode.Pod(p), engine.New(tab, 1, 1)
	offer("a", "example.com/first")
	offer("b", "example.com/first")
	for range 3 {
		if o := e.Decide(engine.For(w.profiles[1], pod), nil); o.Feasible != 2 {
			t.Fatalf("%d nodes are feasible, want 2", o.Feasible)
		}
	}
	for i := range 300 {
		for _, name := range []string{"a", "b"} {
			offer(name, fmt.Sprintf("example.com/%s-%d", name, i))
		}
		if o := e.Decide(engine.For(w.profiles[1], pod), nil); o.Feasible != 0 {
			t.Fatalf("round %d: %d nodes are feasible, none offers the resource", i, o.Feasible)
		}
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
}

func resourceOf(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }

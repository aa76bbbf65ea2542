package preempt

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Only pods of lower priority that have to go are victims, and the more important of
// them are spared first.
func TestVictims(t *testing.T) {
	for _, c := range []struct {
		name  string
		world *world
		want  string
	}{
		{"all that is needed, the least important",
			newWorld(pod("p", 10, 500)).node("n", 1000, pod("low", 1, 400), pod("high", 2, 400), pod("tiny", 0, 100)),
			"n: low, 0 violations"},
		{"never of equal priority",
			newWorld(pod("p", 10, 500)).node("n", 1000, pod("equal", 10, 600), pod("lower", 9, 400)),
			""},
		{"of equal importance, who started last goes",
			newWorld(pod("p", 10, 500)).node("n", 1000, pod("old", 1, 500, startedAt(-9)), pod("young", 1, 500, startedAt(-8))),
			"n: young, 0 violations"},
		{"who has not started goes before who has",
			newWorld(pod("p", 10, 500)).node("n", 1000, pod("waits", 1, 500, notStarted), pod("young", 1, 500, startedAt(-1))),
			"n: waits, 0 violations"},
		{"a port is freed, not room",
			newWorld(pod("p", 10, 100, port(80))).node("n", 1000, pod("big", 1, 800), pod("web", 2, 100, port(80))),
			"n: web, 0 violations"},
		{"a pod nominated with equal priority takes room",
			nominate(newWorld(pod("p", 10, 500)).node("n", 1000, pod("a", 1, 500), pod("b", 2, 500)), "n", pod("q", 10, 500)),
			"n: b a, 0 violations"},
		{"a pod nominated with lower priority takes none",
			nominate(newWorld(pod("p", 10, 500)).node("n", 1000, pod("a", 1, 500), pod("b", 2, 500)), "n", pod("q", 9, 500)),
			"n: a, 0 violations"},
	} {
		if plan, _, err := c.world.find(t, everything); plan.text() != c.want || err != nil {
			t.Errorf("%s: got %q, %v; want %q", c.name, plan.text(), err, c.want)
		}
	}
}

func nominate(w *world, node string, p *object.Pod) *world {
	w.nominated[node] = append(w.nominated[node], p)
	return w
}

// Pods whose budgets allow no disruption are spared first, and the violations that
// remain are counted.
func TestBudgets(t *testing.T) {
	// Two of three pods have to go.
	full := func() *world {
		return newWorld(pod("p", 10, 600)).node("n", 900,
			pod("a", 3, 300, app("x")), pod("b", 2, 300, app("x")), pod("c", 1, 300, app("y")))
	}
	for _, c := range []struct {
		name  string
		world *world
		want  string
	}{
		{"none", full(), "n: b c, 0 violations"},
		{"a protected pod comes back before a more important one", full().budget("default", "y", 0), "n: a b, 0 violations"},
		{"pods are counted one by one, the most important first", full().budget("default", "x", 1), "n: a c, 0 violations"},
		{"enough for all", full().budget("default", "x", 2), "n: b c, 0 violations"},
		{"violated where it must be", full().budget("default", "x", 0).budget("default", "y", 0), "n: b c, 2 violations"},
		{"every budget that covers a pod counts", full().budget("default", "x", 2).budget("default", "x", 1), "n: a c, 0 violations"},
		{"a pod that violates one is not counted against the next", full().budget("default", "x", 0).budget("default", "x,y", 1), "n: b c, 1 violations"},
		{"of another namespace", full().budget("other", "y", 0), "n: b c, 0 violations"},
		{"pods on their way out are counted already", full().budget("default", "y", 0, "c"), "n: b c, 0 violations"},
		{"a negative allowance", full().budget("default", "y", -1), "n: a b, 0 violations"},
	} {
		if plan, _, err := c.world.find(t, everything); plan.text() != c.want || err != nil {
			t.Errorf("%s: got %q, %v; want %q", c.name, plan.text(), err, c.want)
		}
	}
}

// A budget whose selector is invalid, empty or matches nothing covers no pod, and none
// covers a pod without labels.
func TestBudgetsThatCoverNoPod(t *testing.T) {
	selectors := map[string]labels.Selector{"invalid": nil, "none": labels.Nothing(), "empty": labels.Everything()}
	for name, s := range selectors {
		b := &object.Budget{Namespace: "default", Name: name, Selector: s}
		if b.Counts(pod("a", 1, 1, app("x"))) {
			t.Errorf("a budget with selector %s covers a pod", name)
		}
	}
	absent, err := labels.Parse("!tier")
	if err != nil {
		t.Fatal(err)
	}
	b := &object.Budget{Namespace: "default", Selector: absent}
	if b.Counts(pod("a", 1, 1)) || !b.Counts(pod("a", 1, 1, app("x"))) {
		t.Error("a pod without labels is covered, or one with labels is not")
	}
}

// TestCriteria gives two nodes that differ first in one criterion, and in the
// other direction in all that follow.
func TestCriteria(t *testing.T) {
	preemptor := pod("p", 100, 1000)
	for _, c := range []struct {
		name   string
		better []*object.Pod
		worse  []*object.Pod
		budget string
	}{
		{"fewest violations",
			[]*object.Pod{pod("a", 9, 1000)}, []*object.Pod{pod("b", 1, 1000, app("x"))}, "x"},
		{"lowest highest priority",
			[]*object.Pod{pod("a", 2, 500), pod("b", 2, 500)}, []*object.Pod{pod("c", 3, 1000, startedAt(-1))}, ""},
		{"lowest sum of priorities",
			[]*object.Pod{pod("a", 3, 500), pod("b", 1, 500)}, []*object.Pod{pod("c", 3, 500, startedAt(-1)), pod("d", 2, 500)}, ""},
		{"of negative priorities, fewer pods sum up to less",
			[]*object.Pod{pod("a", -5, 1000)}, []*object.Pod{pod("b", -5, 500, startedAt(-1)), pod("c", -5, 500)}, ""},
		{"latest start of the most important",
			[]*object.Pod{pod("a", 3, 500, startedAt(-1)), pod("b", 1, 500, startedAt(-9))},
			[]*object.Pod{pod("c", 3, 500, startedAt(-2)), pod("d", 1, 500, startedAt(-1))}, ""},
	} {
		for _, names := range [][2]string{{"m", "n"}, {"n", "m"}} {
			w := newWorld(preemptor).node(names[0], 1000, c.better...).node(names[1], 1000, c.worse...)
			if c.budget != "" {
				w.budget("default", c.budget, 0)
			}
			if plan, _, err := w.find(t, everything); err != nil || plan == nil || plan.Node != names[0] {
				t.Errorf("%s: got %q, %v; want node %s", c.name, plan.text(), err, names[0])
			}
		}
	}
}

// TestFewestVictims: with the lowest of all priorities a pod adds nothing to
// the sum, so that their number decides.
func TestFewestVictims(t *testing.T) {
	const least = -1 << 31
	w := newWorld(pod("p", 0, 1000)).
		node("m", 1000, pod("a", least, 500, startedAt(-1)), pod("b", least, 500, startedAt(-1))).
		node("n", 1000, pod("c", least, 1000))
	if plan, _, _ := w.find(t, everything); plan.text() != "n: c, 0 violations" {
		t.Errorf("got %q", plan.text())
	}
}

// TestPrioritiesAtTheEnds: the highest of all priorities is lower than none, the lowest
// higher than none, and sums of the highest do not wrap.
func TestPrioritiesAtTheEnds(t *testing.T) {
	const least, most = math.MinInt32, math.MaxInt32
	for _, c := range []struct {
		name      string
		preemptor int32
		m, n      []*object.Pod
		want      string
	}{
		{"the highest and its equal", most, []*object.Pod{pod("a", most, 1000)}, nil, ""},
		{"the lowest and its equal", least, []*object.Pod{pod("a", least, 1000)}, nil, ""},
		{"the highest and the next", most, []*object.Pod{pod("a", most-1, 1000)}, nil, "m: a, 0 violations"},
		{"the lowest but one", least + 1, []*object.Pod{pod("a", least, 1000)}, nil, "m: a, 0 violations"},
		{"the lowest goes before the highest", most, []*object.Pod{pod("a", most-1, 1000)}, []*object.Pod{pod("b", least, 1000)}, "n: b, 0 violations"},
		{"the sums of the highest", most,
			[]*object.Pod{pod("a", most-1, 400, startedAt(-1)), pod("b", most-1, 300, startedAt(-1)), pod("c", most-1, 300, startedAt(-1))},
			[]*object.Pod{pod("d", most-1, 500), pod("e", most-1, 500)}, "n: d e, 0 violations"},
	} {
		w := newWorld(pod("p", c.preemptor, 1000)).node("m", 1000, c.m...)
		if len(c.n) > 0 {
			w.node("n", 1000, c.n...)
		}
		if plan, _, err := w.find(t, everything); err != nil || plan.text() != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.name, plan.text(), err, c.want)
		}
	}
}

// What a finder knew of one pod says nothing about a pod of another class.
func TestFinderOfOtherPods(t *testing.T) {
	finder := &Finder{}
	w := newWorld(pod("p", 3, 1000)).node("m", 1000, pod("a", 1, 1000)).node("n", 2000, pod("b", 2, 2000))
	for _, cpu := range []int64{2000, 1000, 2000} {
		want := map[int64]string{1000: "m: a, 0 violations", 2000: "n: b, 0 violations"}[cpu]
		w.pod = pod("p", 3, cpu)
		c := w.call()
		c.Cache = nil
		if plan, _, _ := finder.Find(c, everything); plan.text() != want {
			t.Errorf("%d CPUs: got %q, want %q", cpu, plan.text(), want)
		}
	}
}

// Pods of one class may have different priorities. What is kept of one holds for no other.
func TestRanksOfOnePriority(t *testing.T) {
	finder := &Finder{}
	w := newWorld(pod("p", 3, 1000)).node("m", 1000, pod("a", 2, 1000)).node("n", 1, pod("b", 1, 1))
	for i, priority := range []int32{3, 3, 3, 2, 3, 2} {
		w.pod = pod("p", priority, 1000)
		want := map[int32]string{3: "m: a, 0 violations"}[priority]
		if plan, _, err := finder.Find(w.call(), everything); plan.text() != want || err != nil {
			t.Errorf("%d: priority %d: got %q, %v; want %q", i, priority, plan.text(), err, want)
		}
	}
}

// What a filter that looks at other nodes says of a row is not kept for the next pod of
// the class: a pod that leaves another node may have changed it.
func TestRefusalByOtherRowsIsNotKept(t *testing.T) {
	w := newWorld(pod("new", 10, 4)).node("a", 4, pod("low", 0, 4)).node("b", 0)
	w.spread = true
	for i := range 6 {
		w.table.AddPod(pod(fmt.Sprint("crowd", i), 20, 0, app("b")), "b")
	}
	finder := &Finder{}
	if plan, _, err := finder.Find(w.call(), everything); plan != nil || err != nil {
		t.Fatalf("in a crowd: %s, %v", plan.text(), err)
	}
	w.table.RemovePod("crowd0")
	if plan, _, err := finder.Find(w.call(), everything); plan.text() != "a: low, 0 violations" || err != nil {
		t.Errorf("the crowd is gone: %s, %v", plan.text(), err)
	}
}

// Each node on which preemption does not help is counted under its reason.
func TestRefused(t *testing.T) {
	w := newWorld(pod("p", 10, 500)).
		node("closed", 0).
		node("equals", 1000, pod("a", 10, 600)).
		node("more", 1000, pod("b", 10, 1000)).
		node("small", 400, pod("c", 1, 100))
	w.closed["closed"] = true
	plan, refused, err := w.find(t, everything)
	got := map[string]int{}
	for _, r := range refused {
		got[strings.Join(r.Reasons, ",")] += r.Nodes
	}
	want := map[string]int{
		"Preemption is not helpful for scheduling":     1,
		"No preemption victims found for incoming pod": 2,
		"Insufficient cpu":                             1,
	}
	if plan != nil || err != nil || len(got) != len(want) {
		t.Fatalf("got %q, %v, %v", plan.text(), got, err)
	}
	for reason, n := range want {
		if got[reason] != n {
			t.Errorf("%q on %d nodes, want %d", reason, got[reason], n)
		}
	}
}

// TestNoVictimNeeded: the pod as a whole was rejected, not by a node's pods.
func TestNoVictimNeeded(t *testing.T) {
	w := newWorld(pod("p", 10, 100)).node("n", 1000, pod("a", 1, 100))
	c := w.call()
	c.Filters.Code = func(r table.Row) decision.Code { return decision.Unschedulable }
	c.Filters.Unschedulable = func() int { return 1 }
	plan, refused, err := new(Finder).Find(c, everything)
	if plan != nil || refused != nil || err == nil || err.Error() != `expected at least one victim pod on node "n"` {
		t.Errorf("got %q, %v, %v", plan.text(), refused, err)
	}
}

// The plan clears the nominations to its node of lower priority, and no others.
func TestLowerNominationsAreCleared(t *testing.T) {
	w := newWorld(pod("p", 10, 500)).node("n", 1000, pod("a", 1, 1000))
	nominate(nominate(w, "n", pod("lower", 9, 1)), "n", pod("equal", 10, 1))
	plan, _, _ := w.find(t, everything)
	if len(plan.NominationsToClear) != 1 || plan.NominationsToClear[0].Name != "lower" {
		t.Errorf("got %v", plan.NominationsToClear)
	}
}

// A candidate is left out where another pod was nominated meanwhile, and where its node
// is gone. What stays stands in its order.
func TestLeft(t *testing.T) {
	w := newWorld(pod("p", 10, 800)).node("m", 1000, pod("a", 1, 900)).node("n", 1000, pod("b", 1, 900)).node("o", 1000, pod("c", 1, 900))
	found, _, err := Candidates(w.call(), everything)
	if err != nil || len(found) != 3 {
		t.Fatalf("found %v, %v", found, err)
	}
	nominate(w, found[1].Node, pod("q", 10, 500))
	left := Left(w.call(), append(found, framework.Candidate{Node: "gone"}))
	if len(left) != 2 || left[0].Node != found[0].Node || left[1].Node != found[2].Node {
		t.Errorf("of %v are left %v", found, left)
	}
}

// The number of candidates is the larger of the percentage and the absolute limit, and
// at most the nodes there are.
func TestLimits(t *testing.T) {
	for _, c := range []struct{ percentage, absolute, nodes, want int }{
		{10, 100, 5000, 500}, {10, 100, 500, 100}, {10, 100, 60, 60}, {0, 1, 9, 1}, {33, 0, 10, 3}, {1, 0, 10, 0},
	} {
		if got := (Limits{c.percentage, c.absolute}).of(c.nodes); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}

// TestEnough: the search starts where most is promised, goes on only where a
// plan may be better, and ends with enough candidates, of which one violates no
// budget.
func TestEnough(t *testing.T) {
	// Pods of priority 1, except for those that hold the port: it is the only one
	// that has to go, and sums do not tell.
	build := func(names ...string) *world {
		w := newWorld(pod("p", 10, 1000, port(80))).budget("default", "kept", 0)
		for i, name := range names {
			v := pod(name, int32(2+i), 100, port(80))
			if strings.HasSuffix(name, "kept") {
				app("kept")(v)
			}
			w.node(name, 2000, v, pod("low-"+name, 1, 1000))
		}
		return w
	}
	for _, c := range []struct {
		name  string
		world *world
		few   Limits
		want  string
		tries []string
	}{
		{"one is enough", build("d", "c", "b", "a"), Limits{Absolute: 1}, "a", []string{"a"}},
		{"all are looked at", build("d", "c", "b", "a"), everything, "d", []string{"a", "b", "c", "d"}},
		{"on past the limit for one without violation", build("a-kept", "b-kept", "d", "c"), Limits{Absolute: 1}, "c", []string{"a-kept", "b-kept", "c"}},
		{"the first cannot be beaten", newWorld(pod("p", 10, 1000)).node("a", 1000, pod("y", 1, 1000)).node("b", 1000, pod("x", 1, 1000)), everything, "a", []string{"a"}},
		{"one of two equals", newWorld(pod("p", 10, 1000)).node("b", 1000, pod("x", 1, 1000)).node("a", 1000, pod("y", 1, 1000)), everything, "a", []string{"a"}},
		{"nor by one that sums rule out", newWorld(pod("p", 10, 1000)).node("b", 1000, pod("x", 1, 1000)).node("a", 1000, pod("y", 1, 900), pod("z", 10, 100)), everything, "b", []string{"b"}},
	} {
		var tries []string
		c.world.spread = c.few != everything
		c.world.tried = func(node string) {
			if !slices.Contains(tries, node) {
				tries = append(tries, node)
			}
		}
		plan, _, _ := c.world.find(t, c.few)
		if c.few == everything { // which of equals is tried first is not promised
			slices.Sort(tries)
		}
		if plan == nil || plan.Node != c.want || !slices.Equal(tries, c.tries) {
			t.Errorf("%s: got %q after %v; want %s after %v", c.name, plan.text(), tries, c.want, c.tries)
		}
	}
}

// A node whose lowest priority is higher may be better than those that promise more.
func TestPromisesThatDoNotHold(t *testing.T) {
	w := newWorld(pod("p", 100, 1000)).
		node("a", 1000, pod("low-a", 1, 100), pod("big-a", 9, 900)).
		node("b", 1000, pod("low-b", 1, 100), pod("big-b", 10, 900)).
		node("c", 1000, pod("v", 2, 1000))
	if plan, _, _ := w.find(t, everything); plan == nil || plan.Node != "c" {
		t.Errorf("got %q", plan.text())
	}
}

// Nodes of many priorities are searched.
func TestManyPriorities(t *testing.T) {
	w := newWorld(pod("p", 100, 1000))
	for i := range int32(24) {
		name := fmt.Sprint("n", i)
		w.node(name, 1000, pod("low-"+name, i, 100), pod("high-"+name, 100, 900))
	}
	w.node("last", 1000, pod("v", 21, 1000)).node("better", 1000, pod("u", 20, 1000))
	if plan, _, _ := w.find(t, everything); plan == nil || plan.Node != "better" {
		t.Errorf("got %q", plan.text())
	}
}

// A pod may not preempt while a victim of its own leaves its nominated node, or if its
// policy is Never.
func TestIneligible(t *testing.T) {
	nominated := func(v *object.Pod, more ...func(*world)) *world {
		w := newWorld(pod("p", 10, 500)).node("n", 1000, v, pod("rest", 9, 900))
		w.own = "n"
		for _, f := range more {
			f(w)
		}
		return w
	}
	going := func(p *object.Pod) { p.Terminating, p.Disrupted = true, true }
	for _, c := range []struct {
		name  string
		world *world
		want  string
	}{
		{"may", newWorld(pod("p", 10, 500)).node("n", 1000), ""},
		{"policy", newWorld(pod("p", 10, 500, func(p *object.Pod) { p.NeverPreempts = true })), reasonNever},
		{"a victim is going", nominated(pod("v", 1, 100, going)), reasonTerminating},
		{"a victim is about to", nominated(pod("v", 1, 100), func(w *world) { w.evicting["v"] = true }), reasonTerminating},
		{"nobody is", nominated(pod("v", 1, 100)), ""},
		{"one is, but nobody preempted it", nominated(pod("v", 1, 100, func(p *object.Pod) { p.Terminating = true })), ""},
		{"one is marked, but is not going", nominated(pod("v", 1, 100, func(p *object.Pod) { p.Disrupted = true })), ""},
		{"one is, but no victim of this pod", nominated(pod("v", 10, 100, going)), ""},
		{"the node is closed", nominated(pod("v", 1, 100, going), func(w *world) { w.closed["n"] = true }), ""},
		{"the node is gone", nominated(pod("v", 1, 100, going), func(w *world) { w.table.RemoveNode("n") }), ""},
		{"on another node", nominated(pod("v", 1, 100, going), func(w *world) { w.node("m", 1, pod("q", 10, 1)); w.own = "m" }), ""},
	} {
		if got := NotEligible(c.world.call()); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A filter that fails where everybody of lower priority is gone fails the preemption, in
// kube-scheduler's words, unless another node has a plan. A failure is not kept for the next pod
// of the class: it may name what only this one has.
func TestFailingFilter(t *testing.T) {
	build := func() *world {
		w := newWorld(pod("p", 10, 500)).node("a", 1000, pod("low-a", 1, 600)).node("b", 1000, pod("low-b", 1, 600))
		w.failing = map[string]string{"a": "no device", "b": "no device"}
		return w
	}
	want := `running "Devices" filter plugin: no device`
	for _, spread := range []bool{false, true} {
		w := build()
		w.spread = spread
		if plan, refused, err := w.find(t, everything); plan != nil || refused != nil || err == nil || err.Error() != want {
			t.Errorf("got %v, %v, %v", plan, refused, err)
		}
		if found, refused, err := Candidates(w.call(), everything); found != nil || refused != nil || err == nil || err.Error() != want {
			t.Errorf("candidates: got %v, %v, %v", found, refused, err)
		}
		w.failing["a"] = "another device"
		both := `[running "Devices" filter plugin: another device, running "Devices" filter plugin: no device]`
		if _, _, err := w.find(t, everything); err == nil || err.Error() != both {
			t.Errorf("the failure is another: got %v", err)
		}
		delete(w.failing, "b")
		if plan, _, err := w.find(t, everything); plan.text() != "b: low-b, 0 violations" || err != nil {
			t.Errorf("b does not fail: got %q, %v", plan.text(), err)
		}
	}
}

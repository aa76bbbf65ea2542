package machine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/sim"
)

// treeWorld is a small world: nodes with so many CPUs in a tree of zones and racks, some of them
// in no rack, and the pods of a gang that ask for so many.
type treeWorld struct {
	cpus, zones, racks  []int // by node; 0: it lacks the label
	pods                []int
	min                 int
	required, preferred string
}

func newTreeWorld(rng *rand.Rand, equal bool) *treeWorld {
	w := &treeWorld{}
	for range 3 + rng.IntN(5) {
		w.cpus, w.zones, w.racks = append(w.cpus, 1+rng.IntN(4)), append(w.zones, min(2, rng.IntN(6))), append(w.racks, rng.IntN(4))
	}
	for i := range 2 + rng.IntN(3) {
		cpu := 1 + rng.IntN(3)
		if equal && i > 0 {
			cpu = w.pods[0]
		}
		w.pods = append(w.pods, cpu)
	}
	w.min = len(w.pods) - rng.IntN(2)
	levels := []string{"", "zone", "rack"}
	w.required = levels[rng.IntN(3)]
	w.preferred = levels[rng.IntN(3)]
	switch {
	case w.required == "" && w.preferred == "":
		w.preferred = "rack"
	case w.required == "rack":
		w.preferred = ""
	}
	return w
}

// domain returns the domain of the level ("" for the cluster) that a node is in.
func (w *treeWorld) domain(level string, node int) (name string, in bool) {
	switch {
	case level == "":
		return "", true
	case w.zones[node] == 0 || level == "rack" && w.racks[node] == 0:
		return "", false
	case level == "zone":
		return fmt.Sprintf("zone z%d", w.zones[node]), true
	}
	return fmt.Sprintf("rack z%d/r%d", w.zones[node], w.racks[node]), true
}

// holds returns how many of the pods fit on the nodes together, over all ways to place them, and
// the least room that is then left: how many pods of each size the nodes hold beside them.
func (w *treeWorld) holds(free []int, pods []int) (most, left int) {
	if len(pods) == 0 {
		sizes := slices.Compact(slices.Sorted(slices.Values(w.pods)))
		for _, f := range free {
			for _, size := range sizes {
				left += f / size
			}
		}
		return 0, left
	}
	most, left = w.holds(free, pods[1:]) // without the first
	for i := range free {
		if free[i] < pods[0] {
			continue
		}
		free[i] -= pods[0]
		n, rest := w.holds(free, pods[1:])
		free[i] += pods[0]
		if n+1 > most || n+1 == most && rest < left {
			most, left = n+1, rest
		}
	}
	return most, left
}

// best returns the narrowest level at which the gang fits, and its domains that hold the most
// pods with the least room left; none if it fits at no level.
func (w *treeWorld) best() (level string, domains []string) {
	levels := []string{"rack", "zone", ""}
	if w.preferred == "zone" || w.preferred == "" && w.required == "zone" {
		levels = levels[1:]
	}
	for _, level := range levels {
		free := map[string][]int{}
		for node, cpu := range w.cpus {
			if name, in := w.domain(level, node); in {
				free[name] = append(free[name], cpu)
			}
		}
		most, least := 0, 0
		for name, nodes := range free { // any order: sorted by the caller
			n, left := w.holds(nodes, w.pods)
			switch {
			case n < w.min || n < most || n == most && left > least:
			case n == most && left == least:
				domains = append(domains, name)
			default:
				most, least, domains = n, left, []string{name}
			}
		}
		if len(domains) > 0 || level == w.required {
			return level, domains
		}
	}
	return "", nil
}

// run returns the nodes of the pods that a machine places, and what it says of the gang.
func (w *treeWorld) run(t *testing.T, seed uint64) (nodes map[types.UID]string, done machine.PodGroupDone, condition object.GroupCondition) {
	options := gangOptions(t)
	options.Check, options.Seed = true, seed
	options.Profiles[0].Levels = []string{"zone", "rack"}
	m, now := machine.New(options), sim.Epoch
	for i, cpus := range w.cpus {
		n := node(fmt.Sprint("n-", i), fmt.Sprint(cpus), false)
		n.Labels = map[string]string{}
		if w.zones[i] > 0 {
			n.Labels["zone"] = fmt.Sprint("z", w.zones[i])
		}
		if w.racks[i] > 0 {
			n.Labels["rack"] = fmt.Sprint("r", w.racks[i])
		}
		m.Step(now, machine.NodeSet{Node: n})
	}
	m.Step(now, machine.ObjectSet{Object: &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "default", Name: "g", UID: "g"}, Gang: true, MinCount: w.min,
		Required: w.required, Preferred: w.preferred}})
	for i, cpus := range w.pods {
		p := pod(fmt.Sprint("p-", i), fmt.Sprint(cpus))
		p.SchedulingGroup = object.InPodGroup("g")
		m.Step(now.Add(time.Duration(i)*time.Millisecond), machine.PodSet{Pod: p})
	}
	nodes = map[types.UID]string{}
	for first := true; first && m.Ready(); first = false {
		for _, e := range m.Step(now.Add(time.Second), machine.ScheduleOne{}) {
			switch e := e.(type) {
			case machine.Bind:
				nodes[e.Pod.UID] = e.Node
			case machine.PodGroupDone:
				done = e
			case machine.PatchGroupStatus:
				condition = e.Condition
			}
		}
	}
	if err := m.Verify(); err != nil {
		t.Fatal(err)
	}
	return nodes, done, condition
}

// level returns the level and the domain of a placement's name.
func levelOf(placement string) string {
	level, _, _ := strings.Cut(placement, " ")
	return level
}

// A gang of equal pods is placed at the narrowest level at which it fits, in the domain that holds
// the most of its pods with the least room left, and always in the same for the same seed. It
// waits where it fits at no level.
func TestTreeOfEqualPods(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	placed, levels := 0, map[string]int{}
	for range 400 {
		w := newTreeWorld(rng, true)
		nodes, done, _ := w.run(t, 1)
		level, domains := w.best()
		if len(domains) == 0 {
			if len(nodes) > 0 {
				t.Fatalf("%+v: placed %v, though it fits nowhere", w, nodes)
			}
			continue
		}
		if placed, levels[level] = placed+1, levels[level]+1; levelOf(done.Placement) != level || len(nodes) < w.min || level != "" && !slices.Contains(domains, done.Placement) {
			t.Fatalf("%+v: placed in %q: %v, want one of %q", w, done.Placement, nodes, domains)
		}
		w.checkInside(t, done.Placement, nodes)
		if again, same, _ := w.run(t, 1); same.Placement != done.Placement || len(again) != len(nodes) {
			t.Fatalf("%+v: placed in %q, then in %q", w, done.Placement, same.Placement)
		}
	}
	if t.Logf("%d placed, by level %v", placed, levels); placed < 100 || len(levels) < 3 {
		t.Errorf("%d placed, by level %v", placed, levels)
	}
}

// checkInside fails unless all nodes are in the domain.
func (w *treeWorld) checkInside(t *testing.T, placement string, nodes map[types.UID]string) {
	t.Helper()
	for uid, name := range nodes { // any order: each by itself
		var i int
		if _, err := fmt.Sscanf(name, "n-%d", &i); err != nil {
			t.Fatal(err)
		}
		if domain, in := w.domain(levelOf(placement), i); !in || domain != placement {
			t.Fatalf("%+v: %s is on %s in %q, not in %q", w, uid, name, domain, placement)
		}
	}
}

// A gang of unequal pods is never placed where no order has room for it, nor in several domains.
// Mostly, as only some orders are tried, it is placed at the narrowest level at which some order
// fits.
func TestTreeOfUnequalPods(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	possible, narrowest, tightest, rank := 0, 0, 0, map[string]int{"rack": 2, "zone": 1, "": 0}
	for range 400 {
		w := newTreeWorld(rng, false)
		nodes, done, condition := w.run(t, 1)
		level, domains := w.best()
		got := levelOf(done.Placement)
		if len(nodes) > 0 && (len(nodes) < w.min || len(domains) == 0 || rank[got] > rank[level]) {
			t.Fatalf("%+v: placed in %q: %v; some order fits in %q", w, done.Placement, nodes, domains)
		}
		w.checkInside(t, done.Placement, nodes)
		if len(nodes) > 0 && (condition.Message == "") != (w.required == "" && w.preferred == "") {
			t.Fatalf("%+v: the condition is %+v", w, condition)
		}
		if len(domains) == 0 {
			continue
		}
		possible++
		if len(nodes) > 0 && got == level {
			narrowest++
			if level == "" || slices.Contains(domains, done.Placement) {
				tightest++
			}
		}
	}
	if t.Logf("of %d gangs that fit %d are at the narrowest level, %d in the tightest domain", possible, narrowest, tightest); narrowest < possible*9/10 || tightest < possible*8/10 {
		t.Errorf("of %d gangs that fit %d are at the narrowest level, %d in the tightest domain", possible, narrowest, tightest)
	}
}

package preempt

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// elastic is a small cluster with a gang of equal pods that has a minimum, and single pods.
type elastic struct {
	*world
	least    int // the gang's minimum
	priority int32
	pods     []*object.Pod // all that are placed
	row      map[*object.Pod]table.Row
}

// inGang returns an option that puts a pod into the gang from labels with this minimum.
func inGang(least int) func(*object.Pod) {
	const source = "s.example.com"
	return func(p *object.Pod) {
		p.SchedulingGroup = object.InPodGroup(object.GroupName(source, "g"))
		p.Labels = map[string]string{object.MinAvailableLabel(source): fmt.Sprint(least)}
	}
}

// drawElastic draws a cluster without free room.
func drawElastic(t *rapid.T) *elastic {
	number := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	w := &elastic{world: newWorld(pod("p", 5, int64(number("cpu", 1, 4)))), row: map[*object.Pod]table.Row{}}
	w.table.CountGroups()
	w.least, w.priority = number("minimum", 1, 4), rapid.SampledFrom([]int32{3, 3, 3, 6}).Draw(t, "priority of the gang")
	size, left := int64(number("cpu of a pod of the gang", 1, 2)), 8 // brute force tries all sets
	for n := range number("nodes", 1, 3) {
		name, room := fmt.Sprint("n", n), int64(0)
		var here []*object.Pod
		for i := range number("pods", 1, min(5, max(left, 1))) {
			options := []func(*object.Pod){startedAt(-number("age", 1, 30))}
			priority, cpu := rapid.SampledFrom([]int32{2, 3, 3, 3, 4, 6}).Draw(t, "priority"), int64(number("cpu of a pod", 1, 3))
			if rapid.Bool().Draw(t, "in the gang") {
				options, priority, cpu = append(options, inGang(w.least)), w.priority, size
			}
			p := pod(fmt.Sprintf("d/%s-%d", name, i), priority, cpu, options...)
			p.Demand.Requests = p.Demand.Usage
			p.Terminating = number("leaves", 0, 15) == 0
			w.table.Groups().Join(p)
			here, room = append(here, p), room+cpu
			left--
		}
		w.node(name, room, here...)
		row, _ := w.table.Find(name)
		for _, p := range here {
			w.pods, w.row[p] = append(w.pods, p), row
		}
	}
	return w
}

// member reports whether the pod counts for the gang.
func (w *elastic) member(p *object.Pod) bool { return p.PodGroup() != "" && !p.Terminating }

// outcome is what a set of victims means, the most important first: for each unit whether it
// stays, for the surplus of the gang how many do.
func (w *elastic) outcome(goes map[*object.Pod]bool) (stays []int, ok bool) {
	staying := 0
	for _, p := range w.pods {
		if w.member(p) && !goes[p] {
			staying++
		}
	}
	kept := w.keeps()
	if kept && staying > 0 && staying < w.least {
		return nil, false
	}
	type item struct {
		priority int32
		class    int // 0 the gang, 1 a pod, 2 the surplus
		p        *object.Pod
		stays    int
	}
	var items []item
	for _, p := range w.pods {
		it := item{p.Priority, 1, p, 1}
		if goes[p] {
			it.stays = 0
		}
		if !kept || !w.member(p) {
			items = append(items, it)
		}
	}
	if kept {
		items = append(items, item{w.priority, 0, nil, min(staying, 1)}, item{w.priority, 2, nil, staying})
	}
	slices.SortFunc(items, func(a, b item) int {
		order := cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.class, b.class))
		if order == 0 && a.p != nil && b.p != nil {
			return cmp.Or(a.p.Started.Compare(b.p.Started), cmp.Compare(a.p.UID, b.p.UID))
		}
		return order
	})
	for _, it := range items {
		stays = append(stays, it.stays)
	}
	return stays, true
}

// best returns the best outcome of all sets of victims with which ok is true, and the set; nil
// for none.
func (w *elastic) best(ok func(goes map[*object.Pod]bool) bool) (best []int, victims map[*object.Pod]bool) {
	for set := range 1 << len(w.pods) {
		goes := map[*object.Pod]bool{}
		for i, p := range w.pods {
			if set>>i&1 == 1 {
				goes[p] = true
			}
		}
		if slices.ContainsFunc(w.pods, func(p *object.Pod) bool { return goes[p] && p.Priority >= w.pod.Priority }) || !ok(goes) {
			continue
		}
		if stays, allowed := w.outcome(goes); allowed && (best == nil || slices.Compare(stays, best) > 0) {
			best, victims = stays, goes
		}
	}
	return best, victims
}

// cost returns what nodes are compared by, the most important first; less is better.
func (w *elastic) cost(goes map[*object.Pod]bool) []int {
	cost, surplus, whole := []int{0, 0, len(goes), 0}, 0, true
	for _, p := range w.pods {
		if goes[p] {
			cost[0], cost[1] = max(cost[0], int(p.Priority)), cost[1]+int(weight(p.Priority))
		}
		if w.member(p) && goes[p] {
			surplus++
		}
		whole = whole && (goes[p] || !w.member(p))
	}
	if w.keeps() && !whole {
		cost[3] = -surplus
	}
	return cost
}

// keeps reports whether the gang has its minimum.
func (w *elastic) keeps() bool {
	members := 0
	for _, p := range w.pods {
		if w.member(p) {
			members++
		}
	}
	return members >= w.least
}

// room returns what is free on the row without the pods that go.
func (w *elastic) room(r table.Row, goes map[*object.Pod]bool) int64 {
	free := w.table.Node(r).Allocatable.MilliCPU
	for _, p := range w.pods {
		if w.row[p] == r && !goes[p] {
			free -= p.Demand.Usage.MilliCPU
		}
	}
	return free
}

// set returns the pods as a set.
func set(pods []*object.Pod) map[*object.Pod]bool {
	in := map[*object.Pod]bool{}
	for _, p := range pods {
		in[p] = true
	}
	return in
}

// A single pod evicts the surplus of a gang before single pods of its priority, these before
// the whole gang, and never leaves a gang with less than its minimum: of all sets of victims
// the one that is left spares the most important. Of all nodes it takes the best.
func TestSinglePodKeepsMinimum(t *testing.T) {
	found := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := drawElastic(t)
		w.spread = rapid.Bool().Draw(t, "filters look beyond the node") // app b has no pods
		plan, _, err := w.find(t, everything)
		if err != nil {
			t.Fatal(err)
		}
		var least []int
		for _, r := range w.table.All() {
			best, goes := w.best(func(goes map[*object.Pod]bool) bool {
				return w.room(r, goes) >= w.pod.Demand.Usage.MilliCPU && !slices.ContainsFunc(w.pods, func(p *object.Pod) bool {
					return goes[p] && w.row[p] != r && !w.member(p)
				}) && w.needed(r, goes)
			})
			if cost := w.cost(goes); best != nil && (least == nil || slices.Compare(cost, least) < 0) {
				least = cost
			}
			if plan == nil || best == nil || w.table.Name(r) != plan.Node {
				continue
			}
			if got, ok := w.outcome(set(plan.Victims)); !ok || !slices.Equal(got, best) {
				t.Fatalf("%s leaves %v (%t), best is %v", plan.text(), got, ok, best)
			}
			found[fmt.Sprint("surplus ", plan.surplus > 0, ", elsewhere ", slices.ContainsFunc(plan.Victims, func(p *object.Pod) bool { return w.row[p] != r }))]++
		}
		if plan == nil && least == nil {
			return
		}
		if plan == nil || !slices.Equal(w.cost(set(plan.Victims)), least) {
			t.Fatalf("got %s; there is a plan of cost %v", plan.text(), least)
		}
	})
	if len(found) < 2 { // victims elsewhere are rare
		t.Errorf("found %v", found)
	}
}

// needed reports whether pods of the gang on other rows go only with the whole gang.
func (w *elastic) needed(r table.Row, goes map[*object.Pod]bool) bool {
	elsewhere, stays := false, false
	for _, p := range w.pods {
		elsewhere = elsewhere || w.member(p) && w.row[p] != r && goes[p]
		stays = stays || w.member(p) && !goes[p]
	}
	return !elsewhere || !stays
}

// The same holds of a group's search, also where it puts many units back at a time, and where
// it asks about all nodes each time.
func TestGroupKeepsMinimum(t *testing.T) {
	preempted := 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawElastic(t)
		g := newGroupWorldOf(&framework.PodGroupPostFilterCall{Now: now, Table: w.table, Group: &object.PodGroup{Priority: w.pod.Priority}}, w.pod.Demand.Usage.MilliCPU)
		g.Try, g.Fits = g.try, func(a framework.GroupAssignment) bool { return g.free(a.Row) >= g.cpu }
		for range rapid.IntRange(1, 3).Draw(t, "pods of the group") {
			g.Pods = append(g.Pods, &object.Pod{})
		}
		before := picture(w.table)
		g.local = rapid.Bool().Draw(t, "local")
		result := searchVictims(g.PodGroupPostFilterCall, rapid.SampledFrom([]int{0, math.MaxInt}).Draw(t, "checks"))
		if after := picture(w.table); after != before {
			t.Fatalf("the table is %s, and was %s", after, before)
		}
		if result.Status.Code != decision.Success {
			return
		}
		preempted++
		needs := map[table.Row]int64{}
		for _, a := range result.Assignments {
			needs[a.Row] += g.cpu
		}
		best, _ := w.best(func(goes map[*object.Pod]bool) bool {
			for r, n := range needs { // any order: all must fit
				if w.room(r, goes) < n {
					return false
				}
			}
			return true
		})
		if got, ok := w.outcome(set(result.Victims)); !ok || !slices.Equal(got, best) {
			t.Fatalf("%v on %v leave %v (%t), best is %v", result.Victims, needs, got, ok, best)
		}
	})
	least := 20
	if testing.Short() { // it draws few worlds
		least = 1
	}
	if preempted < least {
		t.Errorf("%d groups preempt", preempted)
	}
}

// A gang one pod of which may not go does not go as a whole: its least important pods beyond
// the minimum do, also where that is less than is needed.
func TestGangWithAPodThatStays(t *testing.T) {
	for least, want := range map[int]string{1: "n: b c, 0 violations", 2: "", 3: ""} {
		w := newWorld(pod("p", 5, 2))
		w.table.CountGroups()
		var pods []*object.Pod
		for i, name := range []string{"a", "b", "c"} {
			p := pod("d/"+name, int32(6-3*min(i, 1)), 1, inGang(least), startedAt(-9+i))
			w.table.Groups().Join(p)
			pods = append(pods, p)
		}
		w.node("n", 3, pods...)
		plan, _, err := w.find(t, everything)
		if got := plan.text(); err != nil || got != want {
			t.Errorf("with a minimum of %d got %q, %v", least, got, err)
		}
	}
}

package preempt

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

const nodeCPU = 8

// groupWorld is a table full of pods, and a group whose pods take so much CPU each.
type groupWorld struct {
	*framework.PodGroupPostFilterCall
	cpu   int64
	local bool                // filters answer by the node alone
	taken map[table.Row]int64 // CPU of the group's pods that are placed
}

func newGroupWorldOf(c *framework.PodGroupPostFilterCall, cpu int64) *groupWorld {
	w := &groupWorld{PodGroupPostFilterCall: c, cpu: cpu, taken: map[table.Row]int64{}}
	w.Try, w.Fits = w.try, func(a framework.GroupAssignment) bool { return w.free(a.Row) >= w.cpu }
	return w
}

func newGroupWorld(r *rand.Rand) *groupWorld {
	w := newGroupWorldOf(&framework.PodGroupPostFilterCall{Now: now, Table: table.New(), Group: &object.PodGroup{Priority: 5}}, 1+r.Int64N(4))
	w.Group.Namespace, w.Group.Name = "d", "big"
	world := &world{table: w.Table}
	for i := range 2 + r.IntN(8) {
		var pods []*object.Pod
		for free := int64(nodeCPU); free > 0; {
			p := &object.Pod{UID: types.UID(fmt.Sprintf("u%d-%d", i, len(pods))), Namespace: "d", Name: fmt.Sprint(i), Priority: r.Int32N(7),
				Labels: map[string]string{"app": fmt.Sprint(r.IntN(3))}, Started: now.Add(-time.Duration(r.IntN(50)) * time.Second)}
			p.Demand.Requests.MilliCPU = 1 + r.Int64N(min(free, 4))
			free -= p.Demand.Requests.MilliCPU
			pods = append(pods, p)
		}
		world.node(fmt.Sprint("n", i), nodeCPU, pods...)
	}
	world.budget("d", "1", r.Int32N(3))
	w.Budgets = world.budgets
	for range 1 + r.IntN(6) {
		w.Pods = append(w.Pods, &object.Pod{})
	}
	return w
}

// try gives each pod of the group the first node that has room for it.
func (w *groupWorld) try() ([]framework.GroupAssignment, *decision.Status) {
	var found []framework.GroupAssignment
	for _, r := range w.Table.All() {
		for free := w.free(r); free >= w.cpu && len(found) < len(w.Pods); free -= w.cpu {
			a := framework.GroupAssignment{Assignment: framework.Assignment{Pod: w.Pods[len(found)], Row: r}, Local: w.local}
			a.Place, a.Remove = func() { w.taken[r] += w.cpu }, func() { w.taken[r] -= w.cpu }
			found = append(found, a)
		}
	}
	if len(found) < len(w.Pods) {
		return nil, &decision.Status{Code: decision.Unschedulable, Reasons: []string{"no room"}}
	}
	return found, nil
}

// free returns how much CPU no pod on the row has.
func (w *groupWorld) free(r table.Row) int64 {
	free := w.Table.Node(r).Allocatable.MilliCPU - w.taken[r]
	for _, pl := range w.Table.Pods(r) {
		free -= pl.Pod.Demand.Requests.MilliCPU
	}
	return free
}

// fits reports whether each assignment has its room, as the table is now.
func (w *groupWorld) fits(found []framework.Assignment) bool {
	needs := map[table.Row]int64{}
	for _, a := range found {
		needs[a.Row] += w.cpu
	}
	for r, n := range needs { // any order: all must fit
		if w.free(r) < n {
			return false
		}
	}
	return true
}

func (w *groupWorld) placed() (uids []types.UID) {
	for _, r := range w.Table.All() {
		for _, pl := range w.Table.Pods(r) {
			uids = append(uids, pl.Pod.UID)
		}
	}
	slices.Sort(uids)
	return uids
}

// The group's pods fit on their nodes without the victims, and with none of them; the table
// is as before; asking about the nodes of what comes back alone, or putting back many at a
// time, finds the same victims.
func TestForGroup(t *testing.T) {
	preempted := 0
	for seed := range uint64(400) {
		w := newGroupWorld(rand.New(rand.NewPCG(seed, 1)))
		before := w.placed()
		found := searchVictims(w.PodGroupPostFilterCall, 1<<30)
		halved := searchVictims(w.PodGroupPostFilterCall, 0)
		w.local = true
		local := searchVictims(w.PodGroupPostFilterCall, 0)
		if !reflect.DeepEqual(found, halved) || !reflect.DeepEqual(found, local) {
			t.Errorf("seed %d: one by one %v, many at a time %v, by the node alone %v", seed, found, halved, local)
		}
		if !slices.Equal(before, w.placed()) {
			t.Fatalf("seed %d: the table has changed", seed)
		}
		if found.Status.Code != decision.Success {
			continue
		}
		preempted++
		rows := map[types.UID]table.Row{}
		for _, p := range found.Victims {
			rows[p.UID] = w.Table.Pod(p.UID).Row
			if p.Priority >= w.Group.Priority {
				t.Errorf("seed %d: victim %s of priority %d", seed, p.UID, p.Priority)
			}
			w.Table.RemovePod(p.UID)
		}
		if !w.fits(found.Assignments) {
			t.Errorf("seed %d: no room without %v", seed, found.Victims)
		}
		for _, p := range found.Victims {
			w.Table.Place(p, rows[p.UID])
			if w.fits(found.Assignments) {
				t.Errorf("seed %d: victim %s may stay", seed, p.UID)
			}
			w.Table.RemovePod(p.UID)
		}
	}
	if preempted < 100 {
		t.Errorf("%d groups preempt", preempted)
	}
}

// Units come in kube-scheduler's order: by priority, groups first, of these the larger ones, then the
// older ones.
func TestMoreImportantUnit(t *testing.T) {
	named := func(name string, priority int32, grouped bool, pods int, since int) *unit {
		u := &unit{priority: priority, grouped: grouped, since: now.Add(time.Duration(since) * time.Second)}
		for i := range pods {
			u.pods = append(u.pods, &object.Pod{UID: types.UID(fmt.Sprint(name, i))})
		}
		return u
	}
	want := []*unit{named("a", 3, false, 1, 0), named("b", 2, true, 3, 9), named("c", 2, true, 2, 1), named("d", 2, true, 2, 2),
		named("e", 2, true, 1, 0), named("f", 2, false, 1, 3), named("g", 2, false, 1, 4), named("h", 1, true, 9, 0)}
	for seed := range uint64(20) {
		got := slices.Clone(want)
		rand.New(rand.NewPCG(seed, 2)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		if slices.SortFunc(got, moreImportantUnit); !slices.Equal(got, want) {
			t.Errorf("seed %d: %v", seed, got)
		}
	}
}

// The table is as before where a filter panics.
func TestForGroupPanics(t *testing.T) {
	w := newGroupWorld(rand.New(rand.NewPCG(1, 1)))
	before, tries := w.placed(), 0
	w.Fits = func(framework.GroupAssignment) bool {
		if tries++; tries == 2 {
			panic("broken")
		}
		return true
	}
	func() {
		defer func() { _ = recover() }()
		ForGroup(w.PodGroupPostFilterCall)
	}()
	if tries != 2 || !slices.Equal(before, w.placed()) {
		t.Errorf("after %d tries the table has %v, had %v", tries, w.placed(), before)
	}
}

// A pod that a budget protects stays where another can go, though that one is more important.
// Of a unit one protected pod is enough.
func TestForGroupSparesGuarded(t *testing.T) {
	w := newGroupWorldOf(&framework.PodGroupPostFilterCall{Now: now, Table: table.New(), Group: &object.PodGroup{Priority: 5}, Pods: []*object.Pod{{}}}, nodeCPU/2)
	w.Table.CountGroups()
	pod := func(name, group string, priority int32) *object.Pod {
		p := &object.Pod{UID: types.UID(name), Namespace: "d", Name: name, Priority: priority, Labels: map[string]string{"app": name}, SchedulingGroup: object.InPodGroup(group)}
		p.Demand.Requests.MilliCPU = nodeCPU / 2
		w.Table.Groups().Join(p)
		return p
	}
	whole := &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "d", Name: "whole", UID: "whole"}, Priority: 2, PreemptedWhole: true}
	w.Table.Objects().Set(whole)
	world := (&world{table: w.Table}).node("a", nodeCPU, pod("guarded", "whole", 9), pod("other", "", 3)).node("b", nodeCPU, pod("beside", "whole", 9))
	world.budget("d", "guarded", 0)
	w.Budgets = world.budgets
	if found := ForGroup(w.PodGroupPostFilterCall); len(found.Victims) != 1 || found.Victims[0].Name != "other" {
		t.Errorf("got %v", found)
	}
	w.Pods = append(w.Pods, w.Pods[0])
	if found := ForGroup(w.PodGroupPostFilterCall); len(found.Victims) != 3 {
		t.Errorf("got %v", found)
	}
}

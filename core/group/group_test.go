package group

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/object"
)

// Whatever joins, leaves, is placed and taken, a group's counts and lists are those of a
// count of its pods.
func TestCountsAreThoseOfThePods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gs := New()
		known, placed := map[types.UID]*object.Pod{}, map[types.UID]*object.Pod{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			n := rapid.IntRange(0, 9).Draw(t, "pod")
			p := &object.Pod{UID: types.UID(fmt.Sprint(n)), Namespace: "d", Name: fmt.Sprint(n), SchedulingGroup: object.InPodGroup([]string{"", "g", "h"}[n%3])}
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				gs.Join(p)
				known[p.UID] = p
			case 2:
				if placed[p.UID] != nil {
					gs.Taken(p)
				}
				gs.Leave(p)
				delete(known, p.UID)
				delete(placed, p.UID)
			case 3:
				if known[p.UID] != nil {
					p.NodeName = rapid.SampledFrom([]string{"", "n"}).Draw(t, "bound to")
					gs.Placed(p)
					placed[p.UID] = p
				}
			case 4:
				gs.Taken(p)
				delete(placed, p.UID)
			}
			check(t, gs, known, placed)
		}
	})
}

func check(t *rapid.T, gs *Groups, known, placed map[types.UID]*object.Pod) {
	err := gs.Check(func(uid types.UID) *object.Pod { return placed[uid] }, func(yield func(*object.Pod) bool) {
		for _, p := range known {
			if !yield(p) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"g", "h"} {
		var all, assigned, assumed, unscheduled []types.UID
		for uid, p := range known {
			if p.PodGroup() != name {
				continue
			}
			all = append(all, uid)
			switch on := placed[uid]; {
			case on == nil:
				unscheduled = append(unscheduled, uid)
			case on.NodeName == "":
				assumed = append(assumed, uid)
			default:
				assigned = append(assigned, uid)
			}
		}
		g := gs.Named(types.NamespacedName{Namespace: "d", Name: name})
		for what, lists := range map[string][2][]types.UID{
			"all": {all, slices.Collect(g.All())}, "assigned": {assigned, slices.Collect(g.Assigned())},
			"assumed": {assumed, slices.Collect(g.Assumed())}, "unscheduled": {unscheduled, slices.Collect(g.Unscheduled())},
		} {
			slices.Sort(lists[0])
			slices.Sort(lists[1])
			if !slices.Equal(lists[0], lists[1]) {
				t.Fatalf("group %s, %s: want %v, got %v", name, what, lists[0], lists[1])
			}
		}
		if g.Len() != len(all) || g.Scheduled() != len(assigned)+len(assumed) || (g == nil) != (len(all) == 0) {
			t.Fatalf("group %s: %d pods, %d scheduled; want %v, %v, %v", name, g.Len(), g.Scheduled(), all, assigned, assumed)
		}
	}
}

// Where groups do not count nobody has to ask whether they do.
func TestNoGroups(t *testing.T) {
	var gs *Groups
	p := &object.Pod{UID: "p", SchedulingGroup: object.InPodGroup("g")}
	gs.Join(p)
	gs.Placed(p)
	gs.Taken(p)
	gs.Leave(p)
	if g := gs.Of(p); g != nil || g.Len() != 0 || g.Scheduled() != 0 || len(slices.Collect(g.All())) != 0 || gs.Names() != nil {
		t.Errorf("got %v", g)
	}
}

// Whatever joins, leaves and is labelled otherwise, a group from labels alone is what the
// labels of its pods say, and is another object only if they say something else.
func TestLabelledGroups(t *testing.T) {
	const source = "s.example.com"
	rapid.Check(t, func(t *rapid.T) {
		gs, known := New(), map[types.UID]*object.Pod{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			uid := types.UID(fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "pod")))
			p := &object.Pod{UID: uid, Namespace: "d", Name: string(uid), SchedulingGroup: object.InPodGroup(object.GroupName(source, "g")),
				Labels: map[string]string{object.MinAvailableLabel(source): rapid.SampledFrom([]string{"", "0", "2", "3", "x", "y"}).Draw(t, "label")}}
			before, all := gs.Of(p).Labelled(), map[string]bool{}
			if rapid.Bool().Draw(t, "joins") {
				gs.Join(p)
				known[uid] = p
			} else if known[uid] != nil {
				gs.Leave(known[uid])
				delete(known, uid)
			}
			for _, p := range known {
				all[p.Labels[object.MinAvailableLabel(source)]] = true
			}
			g := gs.Of(p).Labelled()
			if err := gs.Check(func(types.UID) *object.Pod { return nil }, maps.Values(known)); err != nil {
				t.Fatal(err)
			}
			sound := len(all) == 1 && (all["2"] || all["3"])
			if (g != nil) != (len(known) > 0) || g != nil && (g.Fault == "") != sound {
				t.Fatalf("%d pods with the labels %v: %+v", len(known), all, g)
			}
			if before != nil && g != nil && *before == *g && before != g {
				t.Fatalf("the group %+v is another one", g)
			}
		}
	})
}

// Many labels that contradict each other are not listed, and one more changes nothing: of a
// flood of such pods each costs the same.
func TestManyLabels(t *testing.T) {
	const source = "s.example.com"
	gs, before := New(), (*object.PodGroup)(nil)
	for i := range 100 {
		p := &object.Pod{UID: types.UID(fmt.Sprint(i)), Namespace: "d", Name: fmt.Sprint(i), SchedulingGroup: object.InPodGroup(object.GroupName(source, "g")),
			Labels: map[string]string{object.MinAvailableLabel(source): fmt.Sprint(200 - i)}}
		gs.Join(p)
		g := gs.Of(p).Labelled()
		if i == 2 && g.Fault != `its pods do not agree on the label s.example.com/min-available: "198" and "199" and "200"` ||
			i == 3 && g.Fault != "its pods do not agree on the label s.example.com/min-available: it has more than 3 values" || i > 3 && g != before {
			t.Fatalf("with pod %d: %+v", i, g)
		}
		before = g
	}
}

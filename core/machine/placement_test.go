package machine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// newPlacements is a machine in which each node is a placement of any group; the last by
// name has the best score. Pods take a node for themselves.
func newPlacements(t *testing.T, edits ...func(*framework.Plugin)) *evictionTest {
	p := newEvictions(t, func(alone *framework.Plugin) {
		alone.PodGroup = &framework.PodGroupPlugin{}
		alone.PodGroup.GeneratePlacements = func(c *framework.PlacementCall, parent framework.Placement) (list []framework.Placement, _ *decision.Status) {
			for _, r := range parent.Rows {
				list = append(list, framework.Placement{Name: c.Table.Name(r), Rows: []table.Row{r}})
			}
			return list, nil
		}
		alone.PodGroup.ScorePlacement = func(c *framework.PlacementCall, a *framework.PodGroupAssignments) (int64, *decision.Status) {
			return int64(len(a.ProposedAssignments)) * int64(a.Name[0]-'a'), nil
		}
		for _, edit := range edits {
			edit(alone)
		}
	})
	o := p.options
	o.PodGroups, o.GroupPlacements = true, true
	p.Machine = New(o)
	p.do(NodeSet{&object.Node{UID: "n", Name: "n"}}, ObjectSet{Object: &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "d", Name: "g", UID: "g-uid"}, Priority: 1}})
	of := p.profiles["s"]
	of.PlacementGenerate, of.PlacementScore = of.QueueSort, []profile.Scorer{{Plugin: of.QueueSort, Weight: 1}}
	return p
}

func grouped(name string, priority int32) PodSet {
	e := preemptible(name, priority, "")
	e.Pod.SchedulingGroup = object.InPodGroup("g")
	return e
}

// attempt is what the step's end says of the group and its pods.
func (p *evictionTest) attempt() (said string) {
	for _, effect := range p.Step(p.now, ScheduleOne{}) {
		switch e := effect.(type) {
		case PodGroupDone:
			said += e.Placement + " " + string(e.Result)
		case AttemptDone:
			said += e.Decision.Pod.Name + " on " + e.Decision.Node + e.Decision.GroupNode + ", "
		case Evict:
			p.said = append(p.said, "evict "+e.Victim.Name)
		}
	}
	return said
}

// A plugin of placements that fails or panics is an error of the group's attempt; what was
// tried is undone.
func TestPlacementsFail(t *testing.T) {
	broken := &decision.Status{Code: decision.Error, Err: errors.New("broken")}
	for name, edit := range map[string]func(*framework.Plugin){
		"generating fails": func(pl *framework.Plugin) {
			pl.PodGroup.GeneratePlacements = func(*framework.PlacementCall, framework.Placement) ([]framework.Placement, *decision.Status) {
				return nil, broken
			}
		},
		"generating panics": func(pl *framework.Plugin) {
			pl.PodGroup.GeneratePlacements = func(*framework.PlacementCall, framework.Placement) ([]framework.Placement, *decision.Status) {
				panic("broken")
			}
		},
		"a score fails": func(pl *framework.Plugin) {
			pl.PodGroup.ScorePlacement = func(*framework.PlacementCall, *framework.PodGroupAssignments) (int64, *decision.Status) {
				return 0, broken
			}
		},
		"a score is too high": func(pl *framework.Plugin) {
			pl.PodGroup.ScorePlacement = func(*framework.PlacementCall, *framework.PodGroupAssignments) (int64, *decision.Status) {
				return 101, nil
			}
		},
		"a score panics": func(pl *framework.Plugin) {
			pl.PodGroup.ScorePlacement = func(*framework.PlacementCall, *framework.PodGroupAssignments) (int64, *decision.Status) {
				panic("broken")
			}
		},
		"normalizing fails": func(pl *framework.Plugin) {
			pl.PodGroup.NormalizePlacementScore = func(*framework.PlacementCall, []*framework.PodGroupAssignments, []int64) *decision.Status {
				return broken
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlacements(t, edit)
			p.do(NodeSet{&object.Node{UID: "m", Name: "m"}}, grouped("a", 1))
			if said := p.attempt(); !strings.HasSuffix(said, string(decision.ResultError)) {
				t.Errorf("got %q", said)
			}
			if p.Table().Pod("a") != nil {
				t.Error("the pod is placed")
			}
			if err := p.Verify(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A cycle tries no more placements than it may, and each attempt others, until all had
// their turn.
func TestWindow(t *testing.T) {
	all := make([]framework.Placement, 7)
	for i := range all {
		all[i].Name = string(rune('a' + i))
	}
	tried := func(pods, attempt int) (names string) {
		for _, p := range window(all, pods, attempt) {
			names += p.Name
		}
		return names
	}
	for i, want := range []string{"abc", "def", "gab", "cde"} {
		if got := tried(mostTries/3, i+1); got != want {
			t.Errorf("attempt %d: %s, want %s", i+1, got, want)
		}
	}
	if got := tried(10*mostTries, 1) + tried(1, 3); got != "ababcdefg" {
		t.Errorf("got %s", got)
	}
}

// Of placements that are as good the seed decides.
func TestPlacementsAreDrawnWithASeed(t *testing.T) {
	drawn := func(seed uint64) string {
		p := newPlacements(t, func(alone *framework.Plugin) {
			alone.PodGroup.ScorePlacement = func(*framework.PlacementCall, *framework.PodGroupAssignments) (int64, *decision.Status) {
				return 0, nil
			}
		})
		p.options.Seed = seed
		p.do(NodeSet{&object.Node{UID: "a", Name: "a"}}, NodeSet{&object.Node{UID: "b", Name: "b"}}, grouped("x", 1))
		return p.attempt()
	}
	all := map[string]bool{}
	for seed := range uint64(16) {
		got := drawn(seed)
		if again := drawn(seed); again != got {
			t.Errorf("seed %d: %s, and then %s", seed, got, again)
		}
		all[got] = true
	}
	if len(all) != 3 {
		t.Errorf("drawn %v", all)
	}
}

// A group is placed at the levels that it names if they are in the tree and do not contradict each
// other. The key of its spec is the required one; if it is not in the tree a plugin generates the
// placements, where its gate is on.
func TestLevelsOfAGroup(t *testing.T) {
	tree := &profile.Profile{Levels: []string{"zone", "block", "x/rack"}}
	for _, tc := range []struct {
		group object.PodGroup
		want  string
	}{
		{object.PodGroup{}, "[]"},
		{object.PodGroup{Required: "block"}, "[zone block x/rack] 1-1"},
		{object.PodGroup{Required: "block", Preferred: "x/rack"}, "[zone block x/rack] 1-2"},
		{object.PodGroup{Preferred: "block"}, "[zone block x/rack] -1-1"},
		{object.PodGroup{TopologyKey: "zone"}, "[zone block x/rack] 0-0"},
		{object.PodGroup{TopologyKey: "zone", Required: "zone", Preferred: "block"}, "[zone block x/rack] 0-1"},
		{object.PodGroup{TopologyKey: "zone", Required: "block"}, `its spec.schedulingConstraints.topology is "zone", but its annotation berth.dev/required-topology is "block"`},
		{object.PodGroup{Required: "block", Preferred: "zone"}, `its annotation berth.dev/preferred-topology is "zone", which is wider than the required level "block"`},
		{object.PodGroup{Required: "rack"}, `its annotation berth.dev/required-topology is "rack", which is no level of GroupTopology: zone, block, x/rack`},
		{object.PodGroup{Preferred: "rack"}, `its annotation berth.dev/preferred-topology is "rack", which is no level of GroupTopology: zone, block, x/rack`},
		{object.PodGroup{TopologyKey: "rack"}, `its spec.schedulingConstraints.topology is "rack", which is no level of GroupTopology: zone, block, x/rack`},
	} {
		for _, gate := range []bool{false, true} {
			want := tc.want
			if gate && tc.group.TopologyKey == "rack" {
				want = "[]"
			}
			of, fault := levelsOf(&Options{GroupPlacements: gate}, tree, &tc.group)
			got := fault
			if fault == "" {
				if got = fmt.Sprint(of.levels); of.levels != nil {
					got += fmt.Sprintf(" %d-%d", of.widest, of.narrowest)
				}
			}
			if got != want {
				t.Errorf("%+v, gate %t: got %s, want %s", tc.group, gate, got, want)
			}
			if of, fault := levelsOf(&Options{GroupPlacements: gate}, &profile.Profile{}, &tc.group); of.levels != nil || fault != "" {
				t.Errorf("%+v: without a tree %v, %s", tc.group, of, fault)
			}
		}
	}
}

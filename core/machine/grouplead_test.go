package machine_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/sim"
)

// Only the leader ends the nominations of a gated group, also those that it finds.
func TestNewLeaderEndsNominationsOfGatedGangs(t *testing.T) {
	m := newGangMachine(t)
	g := &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "default", Name: "g", UID: "g"}, Gang: true, MinCount: 2}
	m.Step(sim.Epoch, machine.ObjectSet{Object: g})
	for _, name := range []string{"a", "b"} {
		p := pod(name, "1")
		p.SchedulingGroup, p.NominatedNode = object.InPodGroup("g"), "n"
		m.Step(sim.Epoch, machine.PodSet{Pod: p})
	}
	if effects := m.Step(sim.Epoch, machine.PodGone{UID: "b"}); len(ended(effects)) > 0 {
		t.Errorf("who does not lead ends the nominations of %v", ended(effects))
	}
	if effects := m.Step(sim.Epoch, machine.ScheduleOne{}); !slices.Equal(ended(effects), []string{"a"}) {
		t.Errorf("the leader ends the nominations of %v", ended(effects))
	}
}

// ended returns the names of the pods whose nomination the effects end.
func ended(effects []machine.Effect) (names []string) {
	for _, e := range effects {
		if patch, is := e.(machine.PatchStatus); is && patch.Nominated != nil && *patch.Nominated == "" {
			names = append(names, patch.Pod.Name)
		}
	}
	return names
}

// gangOptions returns the default options with the gate GenericWorkload.
func gangOptions(tb testing.TB) machine.Options {
	tb.Helper()
	gates := features.New()
	if err := gates.Set("GenericWorkload=true"); err != nil {
		tb.Fatal(err)
	}
	options, err := sim.OptionsUnder(config.With(gates).Default(), gates)
	if err != nil {
		tb.Fatal(err)
	}
	return options
}

// newGangMachine returns a machine with the gate GenericWorkload and a node n.
func newGangMachine(t *testing.T) *machine.Machine {
	m := machine.New(gangOptions(t))
	m.Step(sim.Epoch, machine.NodeSet{Node: node("n", "8", false)})
	return m
}

// A process that begins to lead says of each gang that is placed that it is, once, if the leader
// before could not. Of a gang that is bound in part, or whose condition says so, it says nothing.
func TestNewLeaderShowsPlacedGangs(t *testing.T) {
	m := newGangMachine(t)
	placed := object.GroupCondition{Status: v1.ConditionTrue, Reason: "Scheduled"}
	for name, shown := range map[string]object.GroupCondition{"whole": {}, "part": {}, "said": placed} { // any order: groups of their own
		m.Step(sim.Epoch, machine.ObjectSet{Object: &object.PodGroup{
			Meta: object.Meta{Kind: object.PodGroups, Namespace: "default", Name: name, UID: types.UID(name)}, Gang: true, MinCount: 2, Scheduled: shown,
		}})
		for _, member := range []string{"-a", "-b"} {
			p := pod(name+member, "1")
			p.SchedulingGroup = object.InPodGroup(name)
			if name != "part" || member == "-a" {
				p.NodeName = "n"
			} else {
				p.Gates = []string{"later"}
			}
			m.Step(sim.Epoch, machine.PodSet{Pod: p})
		}
	}
	var said []string
	for range 2 {
		for _, e := range m.Step(sim.Epoch, machine.ScheduleOne{}) {
			if patch, is := e.(machine.PatchGroupStatus); is && patch.Condition.Status == v1.ConditionTrue {
				said = append(said, patch.Group.Name)
			}
		}
	}
	if !slices.Equal(said, []string{"whole"}) {
		t.Errorf("said of %v that they are placed", said)
	}
}

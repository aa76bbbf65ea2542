package machine_test

import (
	"maps"
	"slices"
	"testing"
	"time"

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
	m.Step(sim.Epoch, machine.ObjectSet{Object: gangObject("g")})
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

// A gang that loses a placed pod, and has too few pods then, is nominated no more.
func TestGangOfTooFewPodsIsNotNominated(t *testing.T) {
	m := newGangMachine(t)
	m.Step(sim.Epoch, machine.ScheduleOne{}) // it leads
	pods := addGang(m, "g", "9")
	placed, waits := *pods[0], *pods[1]
	placed.NodeName, waits.NominatedNode = "n", "n"
	m.Step(sim.Epoch, machine.PodSet{Pod: &placed})
	m.Step(sim.Epoch, machine.PodSet{Pod: &waits})
	if effects := m.Step(sim.Epoch, machine.PodGone{UID: placed.UID}); !slices.Equal(ended(effects), []string{waits.Name}) {
		t.Errorf("ended are the nominations of %v", ended(effects))
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

// After a restore of etcd, conditions of a gang's pods that are missing are written again, by
// another attempt, whether the API had shown them or not.
func TestConditionsOfGangsAfterARestore(t *testing.T) {
	for _, shown := range []bool{true, false} {
		m := newGangMachine(t)
		pods := addGang(m, "g", "8")
		written := conditions(m.Step(sim.Epoch, machine.ScheduleOne{}))
		if len(written) != 2 {
			t.Fatalf("conditions %v, want those of both pods", written)
		}
		if shown {
			for i := range pods {
				told := *pods[i]
				told.Scheduled = written[told.Name]
				m.Step(sim.Epoch, machine.PodSet{Pod: &told})
			}
		}
		m.Step(sim.Epoch, machine.Rewound{})
		for _, p := range pods {
			before := *p // as it was, but for its version
			m.Step(sim.Epoch, machine.PodSet{Pod: &before})
		}
		m.Step(sim.Epoch.Add(time.Minute), machine.Tick{})
		if again := conditions(m.Step(sim.Epoch.Add(time.Minute), machine.ScheduleOne{})); !maps.Equal(again, written) {
			t.Errorf("shown %t: the conditions %v are written again, want %v", shown, again, written)
		}
	}
}

// A pod of a group that the API showed running, and shows pending as etcd was restored, counts
// as running until a read tells how it is.
func TestRunningMemberAfterARestore(t *testing.T) {
	m := newGangMachine(t)
	p := addGang(m, "g", "1")[0]
	running := *p
	running.NodeName, running.Running = "n", true
	m.Step(sim.Epoch, machine.PodSet{Pod: &running})
	m.Step(sim.Epoch, machine.Rewound{})
	effects := m.Step(sim.Epoch, machine.PodSet{Pod: p})
	if err := m.Verify(); err != nil {
		t.Error(err)
	}
	if !slices.ContainsFunc(effects, func(e machine.Effect) bool { _, is := e.(machine.ReadPod); return is }) {
		t.Errorf("got %v, want a read of the pod", effects)
	}
}

// gangObject returns a gang of two pods.
func gangObject(name string) *object.PodGroup {
	return &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "default", Name: name, UID: types.UID(name)}, Gang: true, MinCount: 2}
}

// addGang adds a gang of two pods that request cpu each.
func addGang(m *machine.Machine, name, cpu string) (pods []*object.Pod) {
	m.Step(sim.Epoch, machine.ObjectSet{Object: gangObject(name)})
	for _, member := range []string{"-a", "-b"} {
		p := pod(name+member, cpu)
		p.SchedulingGroup = object.InPodGroup(name)
		m.Step(sim.Epoch, machine.PodSet{Pod: p})
		pods = append(pods, p)
	}
	return pods
}

// conditions returns the conditions that the effects write, by pod.
func conditions(effects []machine.Effect) map[string]object.Condition {
	written := map[string]object.Condition{}
	for _, e := range effects {
		if patch, is := e.(machine.PatchStatus); is && patch.Condition != nil {
			written[patch.Pod.Name] = *patch.Condition
		}
	}
	return written
}

// A process that begins to lead says of each gang that is placed that it is, once, if the leader
// before could not. Of a gang that is bound in part, or whose condition says so, it says nothing.
func TestNewLeaderShowsPlacedGangs(t *testing.T) {
	m := newGangMachine(t)
	placed := object.GroupCondition{Status: v1.ConditionTrue, Reason: "Scheduled"}
	for name, shown := range map[string]object.GroupCondition{"whole": {}, "part": {}, "said": placed} { // any order: groups of their own
		g := gangObject(name)
		g.Scheduled = shown
		m.Step(sim.Epoch, machine.ObjectSet{Object: g})
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

// A new leader tries the rest of a gang of which a part is bound before others of its priority,
// in whatever order the API lists the pods, and after a restore of a snapshot. Once the part is
// as many as its minimum, it comes in its turn.
func TestHalfBoundGangComesFirst(t *testing.T) {
	options := gangOptions(t)
	options.Check = true
	rest, part, single := pod("g-a", "1"), bound(pod("g-b", "1"), "n"), pod("single", "1")
	rest.SchedulingGroup, part.SchedulingGroup = object.InPodGroup("g"), object.InPodGroup("g")
	for name, listed := range map[string][]*object.Pod{ // any order: each for itself
		"part first": {part, single, rest}, "part last": {single, rest, part},
	} {
		events := []machine.Event{machine.NodeSet{Node: node("n", "2", false)}, machine.ObjectSet{Object: gangObject("g")}}
		for _, p := range listed {
			events = append(events, machine.PodSet{Pod: p})
		}
		m := machine.New(options)
		for _, e := range events {
			m.Step(sim.Epoch, e)
		}
		restored := machine.New(options)
		if err := restored.Restore(sim.Epoch, events, m.Snapshot()); err != nil {
			t.Fatal(err)
		}
		for _, m := range []*machine.Machine{m, restored} {
			if got := bindingsOf(m.Step(sim.Epoch, machine.ScheduleOne{})); got != "[g-a]" {
				t.Errorf("%s: first comes %s", name, got)
			}
		}
	}

	m := machine.New(options)
	lower := gangObject("g")
	lower.MinCount = 1
	for _, e := range []machine.Event{
		machine.NodeSet{Node: node("n", "2", false)}, machine.ObjectSet{Object: gangObject("g")}, machine.PodSet{Pod: single},
		machine.PodSet{Pod: rest}, machine.PodSet{Pod: part}, machine.ObjectSet{Object: lower},
	} {
		m.Step(sim.Epoch, e)
	}
	if got := bindingsOf(m.Step(sim.Epoch, machine.ScheduleOne{})); got != "[single]" {
		t.Errorf("the part is its minimum, and first comes %s", got)
	}
}

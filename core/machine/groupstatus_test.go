package machine_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/sim"
)

// coscheduler returns a machine with Coscheduling, with a node of 4 CPUs.
func coscheduler(t *testing.T, args string) *machine.Machine {
	t.Helper()
	c, err := config.Decode([]byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: Coscheduling}]}
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
`+args), "test")
	if err != nil {
		t.Fatal(err)
	}
	options, err := sim.Options(c)
	if err != nil {
		t.Fatal(err)
	}
	options.Check = true
	m := machine.New(options)
	m.Step(sim.Epoch, machine.NodeSet{Node: node("n", "4", false)})
	return m
}

// ofTwo returns the PodGroup g, of which two pods are needed, as it shows the status.
func ofTwo(shown object.GroupStatus) machine.ObjectSet {
	return machine.ObjectSet{Object: &object.PodGroup{Meta: object.Meta{Kind: object.CoschedulingGroups, Namespace: "default", Name: "g", UID: "g"},
		Source: object.SchedulerPlugins, Gang: true, MinCount: 2, Status: shown}}
}

// runs returns a running pod of the group.
func runs(name string) *object.Pod {
	p := bound(pod(name, "1"), "n")
	p.Namespace, p.Running, p.Labels = "default", true, map[string]string{object.PodGroupLabel: "g"}
	return p
}

// ends returns the pod as a read shows it when it has ended.
func ends(name string, failed bool) *object.Pod {
	p := runs(name)
	p.Running, p.Terminal, p.Failed = false, true, failed
	return p
}

// written describes the statuses of PodGroups and the reads of pods in the effects.
func written(effects []machine.Effect) (texts []string) {
	for _, e := range effects {
		switch e := e.(type) {
		case machine.PatchGroupPhase:
			texts = append(texts, fmt.Sprintf("%s: %s %d %d %d", e.Group.Name, e.Status.Phase, e.Status.Running, e.Status.Succeeded, e.Status.Failed))
		case machine.ReadPod:
			texts = append(texts, fmt.Sprintf("read %s after %s", e.Pod.Name, e.Delay))
		}
	}
	return texts
}

// A process that begins to lead goes on from the numbers that it finds. It reads a pod that
// leaves the watch until the read succeeds, and not one that was being deleted. What others
// write is put right, and what is on its way is not asked for twice.
func TestGroupStatusIsTrue(t *testing.T) {
	m := coscheduler(t, "")
	step := func(e machine.Event, want string) {
		t.Helper()
		if got := fmt.Sprint(written(m.Step(sim.Epoch, e))); got != want {
			t.Errorf("%T: %s, want %s", e, got, want)
		}
	}
	shown := object.GroupStatus{Phase: object.GroupRunning, Running: 5, Succeeded: 1}
	step(ofTwo(shown), "[]")
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		step(machine.PodSet{Pod: runs(name)}, "[]")
	}
	step(machine.PodGone{UID: runs("e").UID}, "[]")
	step(machine.ScheduleOne{}, "[g: Running 4 1 0]")
	step(machine.ScheduleOne{}, "[]")
	step(ofTwo(shown), "[]") // it is on its way
	shown.Running = 4
	step(ofTwo(shown), "[]")
	shown.Running = 3
	step(ofTwo(shown), "[g: Running 4 1 0]") // somebody else wrote that
	shown.Running = 4
	step(ofTwo(shown), "[]")

	a := runs("a")
	step(machine.PodGone{UID: a.UID}, "[read a after 0s g: Running 3 1 0]")
	if m.Resting() {
		t.Error("a snapshot would lose the read")
	}
	step(machine.ReadReply{UID: a.UID, Err: errors.New("no answer")}, "[read a after 1s]")
	step(machine.ReadReply{UID: a.UID, Pod: ends("a", true)}, "[g: Failed 3 1 1]")
	step(machine.ReadReply{UID: a.UID, Pod: ends("a", true)}, "[]")
	leaving := runs("b")
	leaving.Terminating = true
	step(machine.PodSet{Pod: leaving}, "[]")
	step(machine.PodGone{UID: leaving.UID}, "[g: Failed 2 1 1]")
	c := runs("c")
	step(machine.PodGone{UID: c.UID}, "[read c after 0s g: Failed 1 1 1]")
	step(machine.ReadReply{UID: c.UID}, "[]") // it is gone altogether
	step(machine.ObjectGone{Kind: object.CoschedulingGroups, Namespace: "default", Name: "g"}, "[]")
	step(ofTwo(object.GroupStatus{}), "[g: Pending 1 0 0]")
}

// Each time that somebody else writes or clears occupiedBy, one patch puts it right. It names the
// owner of the pod that came first, also after that pod has left, and after a snapshot. A value
// that is there when a process begins to write stays.
func TestGroupStaysOccupied(t *testing.T) {
	m := coscheduler(t, "")
	step := func(m *machine.Machine, e machine.Event, want ...string) {
		t.Helper()
		var got []string
		for _, e := range m.Step(sim.Epoch, e) {
			if patch, is := e.(machine.PatchGroupPhase); is {
				got = append(got, patch.Status.OccupiedBy)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%T: written %q, want %q", e, got, want)
		}
	}
	owned := func(name, owner string) *object.Pod {
		p := runs(name)
		p.SchedulingGroup = &object.SchedulingGroup{Owners: owner}
		return p
	}
	step(m, ofTwo(object.GroupStatus{}))
	step(m, machine.PodSet{Pod: owned("a", "default/job")})
	step(m, machine.PodSet{Pod: owned("b", "default/other")})
	step(m, machine.ScheduleOne{}, "default/job")
	shown := object.GroupStatus{Phase: object.GroupRunning, Running: 2, OccupiedBy: "default/job"}
	step(m, ofTwo(shown))
	for _, by := range []string{"default/thief", ""} {
		shown.OccupiedBy = by
		step(m, ofTwo(shown), "default/job")
		step(m, ofTwo(shown)) // it is on its way
		shown.OccupiedBy = "default/job"
		step(m, ofTwo(shown))
	}
	leaving := owned("a", "default/job")
	leaving.Terminating = true
	step(m, machine.PodSet{Pod: leaving})
	step(m, machine.PodGone{UID: leaving.UID}, "default/job")
	saved := m.Snapshot()
	if saved == nil || saved.Statuses.Occupied["g"] != "default/job" {
		t.Fatalf("saved is %+v", saved)
	}
	shown.Phase, shown.Running, shown.OccupiedBy = object.GroupPending, 1, "default/thief"
	step(m, ofTwo(shown), "default/job")

	later := coscheduler(t, "")
	step(later, ofTwo(shown))
	step(later, machine.PodSet{Pod: owned("b", "default/other")})
	step(later, machine.ScheduleOne{})
	shown.OccupiedBy = "default/job"
	step(later, ofTwo(shown), "default/thief")
}

// A phase that is final stays, also while the API does not show it yet.
func TestFinalGroupPhaseStays(t *testing.T) {
	m := coscheduler(t, "")
	leaving := runs("b")
	leaving.Terminating = true
	var last []string
	for _, e := range []machine.Event{ofTwo(object.GroupStatus{Phase: object.GroupRunning}), machine.PodSet{Pod: runs("a")}, machine.PodSet{Pod: runs("b")}, machine.ScheduleOne{},
		machine.PodGone{UID: runs("a").UID}, machine.ReadReply{UID: runs("a").UID, Pod: ends("a", true)}, machine.PodSet{Pod: leaving}, machine.PodGone{UID: leaving.UID}} {
		last = written(m.Step(sim.Epoch, e))
	}
	if got := fmt.Sprint(last); got != "[g: Failed 0 0 1]" {
		t.Error(got)
	}
}

// Where the controller of scheduler-plugins writes, Berth writes nothing and reads nothing.
func TestGroupStatusIsLeftToOthers(t *testing.T) {
	m := coscheduler(t, "  pluginConfig: [{name: CoschedulingStatus, args: {write: false}}]\n")
	for _, e := range []machine.Event{ofTwo(object.GroupStatus{}), machine.PodSet{Pod: runs("a")}, machine.ScheduleOne{}, machine.PodGone{UID: runs("a").UID}} {
		if got := written(m.Step(sim.Epoch, e)); got != nil {
			t.Errorf("%T: %s", e, got)
		}
	}
}

// A snapshot says of which half-bound gangs the minimum rose, until they are whole.
func TestRaisedMinimumIsSaved(t *testing.T) {
	m := coscheduler(t, "")
	least := func(n int) machine.ObjectSet {
		set := ofTwo(object.GroupStatus{})
		set.Object.(*object.PodGroup).MinCount = n
		return set
	}
	waits := pod("b", "9")
	waits.Namespace, waits.Labels = "default", map[string]string{object.PodGroupLabel: "g"}
	for _, e := range []struct {
		event machine.Event
		want  int
	}{
		{least(2), 0}, {machine.PodSet{Pod: runs("a")}, 0}, {machine.PodSet{Pod: waits}, 0}, {machine.ScheduleOne{}, 0},
		{least(1), 0}, {least(2), 0}, {least(3), 1}, {machine.PodSet{Pod: runs("c")}, 1}, {machine.PodSet{Pod: runs("d")}, 0},
	} {
		m.Step(sim.Epoch, e.event)
		if s := m.Snapshot(); s == nil || len(s.Raised) != e.want {
			t.Errorf("after %+v: %+v", e.event, s)
		}
	}
}

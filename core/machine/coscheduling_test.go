package machine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/sim"
)

// withCoscheduling enables Coscheduling, with its order of the queue.
const withCoscheduling = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: Coscheduling}]}
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
`

// coschedulingMachine returns a machine that reads the PodGroups of scheduling.x-k8s.io.
func coschedulingMachine(t *testing.T) *machine.Machine {
	t.Helper()
	c, err := config.Decode([]byte(withCoscheduling), "test")
	if err != nil {
		t.Fatal(err)
	}
	options, err := sim.Options(c)
	if err != nil {
		t.Fatal(err)
	}
	options.Check = true
	return machine.New(options)
}

// gang returns a PodGroup of scheduling.x-k8s.io.
func gang(name string, least int, created time.Time) *object.PodGroup {
	return &object.PodGroup{Meta: object.Meta{Kind: object.CoschedulingGroups, Namespace: "default", Name: name, UID: types.UID("group-" + name)},
		Source: object.SchedulerPlugins, Created: created, Gang: true, MinCount: least}
}

// ganged returns the pod with the label that names the group.
func ganged(group string, p *object.Pod) *object.Pod {
	p.Namespace, p.Labels = "default", map[string]string{object.PodGroupLabel: group}
	return p
}

// A machine that begins with a snapshot goes on as the one that it is of: groups that wait for
// their object, for pods and for room are what they were, in their order.
func TestSnapshotOfCoschedulingGroups(t *testing.T) {
	start := sim.Epoch
	events := []machine.Event{
		machine.NodeSet{Node: node("n", "3", false)},
		machine.ObjectSet{Object: gang("late", 2, start.Add(time.Hour))},
		machine.ObjectSet{Object: gang("early", 2, start)},
		machine.ObjectSet{Object: gang("short", 2, start)},
		machine.PodSet{Pod: bound(pod("busy", "2"), "n")},
	}
	for _, of := range []struct{ name, group string }{{"l-1", "late"}, {"l-2", "late"}, {"e-1", "early"}, {"e-2", "early"}, {"s-1", "short"}, {"u-1", "unknown"}} {
		events = append(events, machine.PodSet{Pod: ganged(of.group, pod(of.name, "1"))})
	}
	m := coschedulingMachine(t)
	for _, e := range events {
		m.Step(start, e)
	}
	for m.Ready() {
		m.Step(start, machine.ScheduleOne{})
	}
	for name, want := range map[types.UID]queue.Place{"e-1": queue.Unschedulable, "l-1": queue.Unschedulable, "s-1": queue.Gated, "u-1": queue.Gated} {
		if at := m.Entry(name).Place(); at != want {
			t.Errorf("%s is %s, want %s", name, at, want)
		}
	}
	restored := coschedulingMachine(t)
	if err := restored.Restore(start, events, m.Snapshot()); err != nil {
		t.Fatal(err)
	}
	now := start.Add(time.Minute)
	var bindings []string
	for _, e := range []machine.Event{
		machine.ObjectSet{Object: gang("unknown", 1, start.Add(2*time.Hour))},
		machine.PodSet{Pod: ganged("short", pod("s-2", "1"))},
		machine.ObjectSet{Object: gang("late", 1, start.Add(time.Hour))},
		machine.PodGone{UID: "busy", Namespace: "default", Name: "busy"},
	} {
		now = now.Add(time.Minute)
		for want, got := m.Step(now, e), restored.Step(now, e); ; want, got = m.Step(now, machine.ScheduleOne{}), restored.Step(now, machine.ScheduleOne{}) {
			if bindingsOf(want) != bindingsOf(got) {
				t.Errorf("%T: binds %s, restored %s", e, bindingsOf(want), bindingsOf(got))
			}
			if text := bindingsOf(got); text != "[]" {
				bindings = append(bindings, text)
			}
			if m.Ready() != restored.Ready() {
				t.Fatalf("%T: one of them has nothing to do", e)
			}
			if !m.Ready() {
				break
			}
		}
	}
	// One CPU is free at first: what needs one pod takes it. Of the two more, who was created
	// first has them.
	if want := []string{"[u-1]", "[e-1 e-2]"}; !slices.Equal(bindings, want) {
		t.Errorf("bound %q, want %q", bindings, want)
	}
}

// bindingsOf returns the names of the pods that the effects bind.
func bindingsOf(effects []machine.Effect) string {
	names := []string{}
	for _, e := range effects {
		if b, is := e.(machine.Bind); is {
			names = append(names, b.Pod.Name)
		}
	}
	return fmt.Sprint(names)
}

// While the PodGroups cannot be listed, pods that name one fail with the reason, and others
// are placed.
func TestUnlistedCoschedulingGroups(t *testing.T) {
	m := coschedulingMachine(t)
	m.Step(sim.Epoch, machine.NodeSet{Node: node("n", "4", false)})
	m.Step(sim.Epoch, machine.KindUnlisted{Kind: object.CoschedulingGroups, Err: errors.New("not served")})
	m.Step(sim.Epoch, machine.PodSet{Pod: ganged("g", pod("member", "1"))})
	m.Step(sim.Epoch, machine.PodSet{Pod: pod("other", "1")})
	why, bound := "", ""
	for m.Ready() {
		effects := m.Step(sim.Epoch, machine.ScheduleOne{})
		if b := bindingsOf(effects); b != "[]" {
			bound += b
		}
		for _, e := range effects {
			if done, is := e.(machine.AttemptDone); is && done.Decision.Err != nil {
				why += done.Decision.Pod.Name + ": " + done.Decision.Err.Error()
			}
		}
	}
	if want := "member: the objects of the kind PodGroup.scheduling.x-k8s.io cannot be listed: not served"; why != want || bound != "[other]" {
		t.Errorf("failed %q, bound %s", why, bound)
	}
}

// A group of which an object is deleted while its pods wait for their turn is gated, and its
// pods are nominated no more.
func TestCoschedulingGroupIsDeleted(t *testing.T) {
	m := coschedulingMachine(t)
	m.Step(sim.Epoch, machine.NodeSet{Node: node("n", "4", false)})
	m.Step(sim.Epoch, machine.ScheduleOne{}) // it leads
	m.Step(sim.Epoch, machine.ObjectSet{Object: gang("g", 1, sim.Epoch)})
	p := ganged("g", pod("a", "1"))
	p.NominatedNode = "n"
	m.Step(sim.Epoch, machine.PodSet{Pod: p})
	if at, on := m.Entry("a").Place(), m.Entry("a").NominatedNode(); at != queue.Active || on != "n" {
		t.Fatalf("the pod is %s, nominated to %q", at, on)
	}
	m.Step(sim.Epoch, machine.ObjectGone{Kind: object.CoschedulingGroups, Namespace: "default", Name: "g"})
	if at, on := m.Entry("a").Place(), m.Entry("a").NominatedNode(); at != queue.Gated || on != "" {
		t.Errorf("the pod is %s, nominated to %q", at, on)
	}
}

// Each pod of a group that was tried, or gated for another reason, has a record that says why it is
// gated now.
func TestEachPodSaysWhyItIsGated(t *testing.T) {
	deleted := machine.ObjectGone{Kind: object.CoschedulingGroups, Namespace: "default", Name: "g"}
	const unknown = "PodGroup scheduling.x-k8s.io/g not found"
	for name, c := range map[string]struct {
		least int
		then  machine.Event
		want  map[types.UID]string // part of the message
	}{
		"deleted":                   {3, deleted, map[types.UID]string{"a": unknown, "b": unknown, "c": unknown}},
		"deleted while it is gated": {4, deleted, map[types.UID]string{"a": unknown, "b": unknown, "c": unknown}},
		"its minimum rises":         {3, machine.ObjectSet{Object: gang("g", 4, sim.Epoch)}, map[types.UID]string{"a": "4", "b": "4", "c": "4"}},
		"a member is deleted":       {3, machine.PodGone{UID: "b", Namespace: "default", Name: "b"}, map[types.UID]string{"a": "3", "c": "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := coschedulingMachine(t)
			m.Step(sim.Epoch, machine.NodeSet{Node: node("n", "1", false)})
			m.Step(sim.Epoch, machine.ObjectSet{Object: gang("g", c.least, sim.Epoch)})
			for _, pod := range []*object.Pod{pod("a", "2"), pod("b", "2"), pod("c", "2")} {
				m.Step(sim.Epoch, machine.PodSet{Pod: ganged("g", pod)})
			}
			for m.Ready() {
				m.Step(sim.Epoch, machine.ScheduleOne{})
			}
			got := map[types.UID]string{}
			for _, e := range m.Step(sim.Epoch.Add(time.Hour), c.then) {
				if done, is := e.(machine.AttemptDone); is && done.Decision.Result == decision.ResultGated {
					if got[done.Decision.UID] != "" {
						t.Errorf("%s has two records", done.Decision.UID)
					}
					got[done.Decision.UID] = explain.Message(done.Decision)
				}
			}
			if len(got) != len(c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			for uid, want := range c.want {
				if s := m.Entry(uid).State(); !strings.Contains(got[uid], want) || s.Place != queue.Gated || explain.Status(s.PreEnqueueStatus) != got[uid] {
					t.Errorf("%s has the record %q and is %s for %q, want %q", uid, got[uid], s.Place, explain.Status(s.PreEnqueueStatus), want)
				}
			}
		})
	}
}

package compat_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	. "github.com/berth-scheduler/berth/scheduler/schedulertest"
)

func member(name, group string) *v1.Pod {
	p := Pod(name)
	p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group}
	return p
}

func podGroup(name string, least int32) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: schedulingv1beta1.PodGroupSpec{
		SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: least}}}}
}

// Plugins are shown pod groups, where these are served.
func TestPodGroups(t *testing.T) {
	var h fwk.Handle
	note := WithPlugin("M", with(func(given fwk.Handle) fwk.Plugin {
		h = given
		_ = h.PodGroupManager().PodGroups() // they are wanted from the start
		return even
	}))
	shown := func(group string) string {
		g, err := h.PodGroupManager().PodGroupStates().Get("default", group)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(g.AllPods().Len(), g.AllPodsCount(), g.ScheduledPodsCount(), len(g.ScheduledPods()), g.AssumedPods().Len(), g.AssignedPods().Len(), len(g.UnscheduledPods()))
	}
	c := New(t, WithPodGroups(), note)
	c.Add(Node("node-00"), podGroup("g", 2), podGroup("few", 3), podGroup("empty", 1), member("g-0", "g"), member("g-1", "g"), member("few-0", "few"))
	for _, pod := range []string{"g-0", "g-1"} {
		c.NodeOf(pod)
	}
	c.Until("both pods are bound", func() bool { return shown("g") == "2 2 2 2 0 2 0" })
	if got := shown("few"); got != "1 1 0 0 0 0 1" {
		t.Errorf("a group that lacks pods: %s", got)
	}
	if got := shown("empty"); got != "0 0 0 0 0 0 0" {
		t.Errorf("a group without pods: %s", got)
	}
	if got := shown("none"); got != "pod group state not found for pod group default/none" {
		t.Errorf("no such group: %s", got)
	}

	checkGroups(t, h, member("g-0", "g"))

	c = New(t, note) // without the gate
	c.Add(Node("node-00"), member("g-0", "g"))
	c.NodeOf("g-0")
	if got := shown("g"); got != "generic workload feature gate is disabled" {
		t.Errorf("without the gate: %s", got)
	}
}

// checkGroups checks what the manager says of the pod's group g and of a group that is not there.
func checkGroups(t *testing.T, h fwk.Handle, pod *v1.Pod) {
	t.Helper()
	g, none := fwk.PodGroupKey("default", "g"), fwk.PodGroupKey("default", "none")
	all, err := h.PodGroupManager().BuildHierarchySnapshotFromPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []fwk.PodGroupManager{h.PodGroupManager(), all} {
		object, err := m.PodGroups().Get("default", "g")
		state, err2 := m.PodGroupStates().Get("default", "g")
		if err != nil || object.Name != "g" || err2 != nil || state.AllPodsCount() != 2 {
			t.Errorf("%T: %v, %v, %v, %v", m, object, err, state, err2)
		}
		if root, known, err := m.GetRootKeyForGroup(g); root != g || !known || err != nil {
			t.Errorf("%T: the root is %v, %t, %v", m, root, known, err)
		}
		if root, known, err := m.GetRootKeyForGroup(none); known || err != nil {
			t.Errorf("%T: the root of none is %v, %v", m, root, err)
		}
		if _, _, err := m.GetRootKeyForGroup(fwk.PodKey("default", "g-0")); err == nil {
			t.Errorf("%T: a pod has a root", m)
		}
		_, err = m.CompositePodGroups().Get("default", "g")
		_, err2 = m.CompositePodGroupStates().Get("default", "g")
		if err == nil || err2 == nil {
			t.Errorf("%T: %v, %v", m, err, err2)
		}
		if _, err := m.PodGroups().Get("default", "none"); err == nil {
			t.Errorf("%T: none is there", m)
		}
	}
	if _, err := h.PodGroupManager().BuildHierarchySnapshotFromPod(Pod("single")); err == nil {
		t.Error("a pod without a group has one")
	}
}

// counter records how many pods of the group are scheduled, at each Reserve and Permit: as the
// snapshot has it, as it is, and as the snapshot's node says.
type counter struct {
	named
	handle fwk.Handle
	mu     sync.Mutex
	said   []string
}

func (c *counter) Reserve(_ context.Context, s fwk.CycleState, _ *v1.Pod, node string) *fwk.Status {
	return c.count(s, node)
}

func (c *counter) Unreserve(context.Context, fwk.CycleState, *v1.Pod, string) {}

func (c *counter) Permit(_ context.Context, s fwk.CycleState, _ *v1.Pod, node string) (*fwk.Status, time.Duration) {
	return c.count(s, node), 0
}

func (c *counter) count(s fwk.CycleState, node string) *fwk.Status {
	of := func(l fwk.PodGroupStateLister) int {
		g, err := l.Get("default", "g")
		if err != nil {
			return -1
		}
		return g.ScheduledPodsCount()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	on, err := c.handle.SnapshotSharedLister().NodeInfos().Get(node)
	if err != nil {
		return fwk.AsStatus(err)
	}
	c.said = append(c.said, fmt.Sprint(s.IsPodGroupSchedulingCycle(), of(c.handle.SnapshotSharedLister().PodGroupStates()), of(c.handle.PodGroupManager().PodGroupStates()), len(on.GetPods())))
	return nil
}

// What the cycle of a group tries shows in the snapshot, and what comes of it in
// PodGroupManager. Permit is not called in a try.
func TestPodGroupsWhileTried(t *testing.T) {
	counts := &counter{named: "C"}
	c := New(t, WithPodGroups(), WithPlugin("C", with(func(h fwk.Handle) fwk.Plugin { counts.handle = h; return counts })))
	c.Add(Node("a"), podGroup("g", 2), member("g-0", "g"), member("g-1", "g"))
	c.NodeOf("g-0")
	c.NodeOf("g-1")
	counts.mu.Lock()
	defer counts.mu.Unlock()
	if got := fmt.Sprint(counts.said); got != "[true 1 0 1 true 2 0 2 false 0 1 0 false 0 1 0 false 0 2 0 false 0 2 0]" {
		t.Errorf("got %s", got)
	}
}

// groupGate opens when a PodGroup is there.
type groupGate struct{ gate }

func (g *groupGate) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{Event: fwk.ClusterEvent{Resource: fwk.PodGroup, ActionType: fwk.Add}}}, nil
}

// A PodGroup opens a gate.
func TestEventsOfPodGroups(t *testing.T) {
	g := &groupGate{gate{named: "G"}}
	c := New(t, WithPodGroups(), WithPlugin("G", with(func(fwk.Handle) fwk.Plugin { return g })))
	c.Add(Node("a"), Pod("p"))
	c.Decision("p", 0)
	g.open.Store(true)
	c.Add(podGroup("g", 1))
	c.NodeOf("p")
}

package compat

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
)

// podGroups is the fwk.PodGroupStateLister of plugins, and the manager that returns it.
// With tried, pods that a group's cycle tries count as assumed, and pods that were
// assumed after it do not: the view of a snapshot in kube-scheduler. Without, it is the
// other way round.
type podGroups struct {
	*Hosts
	tried bool
}

// PodGroupStates returns g.
func (g podGroups) PodGroupStates() fwk.PodGroupStateLister { return g }

// Get returns the pods of the group as of now. It is an error if there are none.
func (g podGroups) Get(namespace, name string) (fwk.PodGroupState, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	var pods []machine.GroupPod
	err := g.ask(func() {
		if pods = g.machine.GroupPods(key, g.tried); g.tried && g.lastGroup.of != nil && g.lastGroup.name == key && g.machine.GroupCycle() == nil {
			pods = g.lastGroup.before
		}
	})
	if err != nil {
		return nil, fmt.Errorf("pod group %s: %w", key, err)
	}
	if len(pods) == 0 {
		return nil, fmt.Errorf("pod group state not found for pod group %s", key)
	}
	return podGroupState(pods), nil
}

// podGroupState is the fwk.PodGroupState: a group's pods as of when Get was called.
type podGroupState []machine.GroupPod

// anyPod returns true: it selects all pods of a group.
func anyPod(machine.GroupPod) bool { return true }

// isScheduled reports whether the pod has a node, bound or only assumed.
func isScheduled(p machine.GroupPod) bool { return p.Node != "" }

// isAssigned reports whether the pod is bound: its spec has a node.
func isAssigned(p machine.GroupPod) bool { return p.Pod.NodeName != "" }

// isAssumed reports whether a node was chosen for the pod and it is not bound yet.
func isAssumed(p machine.GroupPod) bool { return isScheduled(p) && !isAssigned(p) }

// those returns the UIDs of the pods for which holds is true.
func (s podGroupState) those(holds func(machine.GroupPod) bool) sets.Set[types.UID] {
	uids := sets.Set[types.UID]{}
	for _, p := range s {
		if holds(p) {
			uids.Insert(p.Pod.UID)
		}
	}
	return uids
}

// AllPods returns the UIDs of all pods.
func (s podGroupState) AllPods() sets.Set[types.UID] { return s.those(anyPod) }

// AllPodsCount returns the number of pods.
func (s podGroupState) AllPodsCount() int { return len(s) }

// AssumedPods returns the UIDs of the pods with a chosen node that are not bound.
func (s podGroupState) AssumedPods() sets.Set[types.UID] { return s.those(isAssumed) }

// AssignedPods returns the UIDs of the bound pods.
func (s podGroupState) AssignedPods() sets.Set[types.UID] { return s.those(isAssigned) }

// ScheduledPodsCount returns the number of pods with a node, bound or assumed.
func (s podGroupState) ScheduledPodsCount() int { return len(s.those(isScheduled)) }

// UnscheduledPods returns the pods without a node by name, as Handle.Activate takes them.
func (s podGroupState) UnscheduledPods() map[string]*v1.Pod {
	pods := map[string]*v1.Pod{}
	for _, p := range s {
		if !isScheduled(p) {
			pods[p.Pod.Name] = APIPod(p.Pod)
		}
	}
	return pods
}

// ScheduledPods returns the pods with a node, which is in their spec.nodeName.
func (s podGroupState) ScheduledPods() []*v1.Pod {
	var pods []*v1.Pod
	for _, p := range s {
		if isScheduled(p) {
			pods = append(pods, onNode(APIPod(p.Pod), p.Node))
		}
	}
	return pods
}

// lastGroup is the pod group of the present scheduling cycle, or of the last if no other
// attempt has begun since.
type lastGroup struct {
	of     any         // the machine's GroupCycle; nil: none
	state  *cycleState // data that plugins store for the group
	name   types.NamespacedName
	before []machine.GroupPod // the group's pods when the cycle began

	// assignments are those that plugins got, by core's.
	assignments map[*framework.PodGroupAssignments]*fwk.PodGroupAssignments
}

// groupState returns the state of the group's cycle under way, which plugins store data in.
// It makes a new one when a cycle begins.
func (h *Host) groupState(name types.NamespacedName) *cycleState {
	if of := h.machine.GroupCycle(); h.lastGroup.of != of {
		h.lastGroup = lastGroup{of, &cycleState{}, name, h.machine.GroupPods(name, false),
			map[*framework.PodGroupAssignments]*fwk.PodGroupAssignments{}}
	}
	return h.lastGroup.state
}

// inGroup sets the group's state in the attempt's CycleState if the cycle of a pod group is
// under way, else clears it. It returns c.
func (c *cycle) inGroup() *cycle {
	h := c.host
	if h.machine == nil {
		return c
	}
	of := h.machine.GroupCycle()
	switch {
	case of == nil && c.state.group != nil:
		c.state.group = nil
		return c
	case of == nil:
		return c
	}
	if state := h.groupState(c.object.GroupKey()); c.state.group == nil {
		c.state.group = state
	}
	return c
}

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

// podGroups gives plugins the pods of groups. As in kube-scheduler, its snapshot has
// those that the cycle of a group tries as assumed, and not those that are assumed for
// good after that; PodGroupManager has it the other way round.
type podGroups struct {
	*Hosts
	tried bool
}

func (g podGroups) PodGroupStates() fwk.PodGroupStateLister { return g }

// Get returns the group as it stands, if it has pods.
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

// podGroupState is the pods of a group as of when it was asked for.
type podGroupState []machine.GroupPod

func anyPod(machine.GroupPod) bool        { return true }
func isScheduled(p machine.GroupPod) bool { return p.Node != "" }
func isAssigned(p machine.GroupPod) bool  { return p.Pod.NodeName != "" }
func isAssumed(p machine.GroupPod) bool   { return isScheduled(p) && !isAssigned(p) }

func (s podGroupState) those(holds func(machine.GroupPod) bool) sets.Set[types.UID] {
	uids := sets.Set[types.UID]{}
	for _, p := range s {
		if holds(p) {
			uids.Insert(p.Pod.UID)
		}
	}
	return uids
}

func (s podGroupState) AllPods() sets.Set[types.UID]      { return s.those(anyPod) }
func (s podGroupState) AllPodsCount() int                 { return len(s) }
func (s podGroupState) AssumedPods() sets.Set[types.UID]  { return s.those(isAssumed) }
func (s podGroupState) AssignedPods() sets.Set[types.UID] { return s.those(isAssigned) }
func (s podGroupState) ScheduledPodsCount() int           { return len(s.those(isScheduled)) }

// UnscheduledPods are by name, as Handle.Activate takes them.
func (s podGroupState) UnscheduledPods() map[string]*v1.Pod {
	pods := map[string]*v1.Pod{}
	for _, p := range s {
		if !isScheduled(p) {
			pods[p.Pod.Name] = APIPod(p.Pod)
		}
	}
	return pods
}

// ScheduledPods have their node.
func (s podGroupState) ScheduledPods() []*v1.Pod {
	var pods []*v1.Pod
	for _, p := range s {
		if isScheduled(p) {
			pods = append(pods, onNode(APIPod(p.Pod), p.Node))
		}
	}
	return pods
}

// lastGroup is the group whose cycle was the last attempt that began.
type lastGroup struct {
	of     any         // the cycle
	state  *cycleState // data that plugins store for the group
	name   types.NamespacedName
	before []machine.GroupPod // when the cycle began

	assignments map[*framework.PodGroupAssignments]*fwk.PodGroupAssignments
}

// groupState returns the data that plugins store for the group whose cycle is under way.
func (h *Host) groupState(name types.NamespacedName) *cycleState {
	if of := h.machine.GroupCycle(); h.lastGroup.of != of {
		h.lastGroup = lastGroup{of, &cycleState{}, name, h.machine.GroupPods(name, false),
			map[*framework.PodGroupAssignments]*fwk.PodGroupAssignments{}}
	}
	return h.lastGroup.state
}

// inGroup links the attempt's state with that of the pod group whose cycle is under way,
// or unlinks it if there is none. It returns the attempt.
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

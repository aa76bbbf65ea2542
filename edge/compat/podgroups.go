package compat

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1beta1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/table"
)

// podGroups is the fwk.PodGroupStateLister of plugins, and the manager that returns it.
// With tried, pods that a group's cycle tries count as assumed, and pods that were
// assumed after it do not: the view of a snapshot in kube-scheduler. Without, it is the
// other way round.
type podGroups struct {
	*Hosts
	tried bool
}

// errNoPodGroups and errNoComposites are the answers to plugins that ask for groups whose feature
// gate is off.
var (
	errNoPodGroups  = errors.New("generic workload feature gate is disabled")
	errNoComposites = errors.New("composite pod group feature gate is disabled")
)

// PodGroupStates returns g.
func (g podGroups) PodGroupStates() fwk.PodGroupStateLister { return g }

// PodGroups returns the lister of PodGroup objects.
func (g podGroups) PodGroups() fwk.PodGroupLister { return g.podGroupObjects() }

// CompositePodGroupStates returns a lister that always fails.
func (g podGroups) CompositePodGroupStates() fwk.CompositePodGroupStateLister {
	return noCompositeStates{}
}

// CompositePodGroups returns a lister that always fails.
func (g podGroups) CompositePodGroups() fwk.CompositePodGroupLister { return noComposites{} }

// Get returns the pods of the group as of now. It is an error if neither the PodGroup nor a pod of
// it exists, if the loop does not answer or, for a manager, if the feature gate GenericWorkload is
// off.
func (g podGroups) Get(namespace, name string) (fwk.PodGroupState, error) {
	if !g.options.PodGroups && !g.tried {
		return nil, errNoPodGroups
	}
	key := types.NamespacedName{Namespace: namespace, Name: name}
	var pods []machine.GroupPod
	var known bool
	err := g.ask(func() {
		known = table.PodGroup(g.machine.Table(), key) != nil
		if pods = g.machine.GroupPods(key, g.tried); g.tried && g.lastGroup.of != nil && g.lastGroup.name == key && g.machine.GroupCycle() == nil {
			pods = g.lastGroup.before
		}
	})
	if err != nil {
		return nil, fmt.Errorf("pod group %s: %w", key, err)
	}
	if !known && len(pods) == 0 {
		return nil, fmt.Errorf("pod group state not found for pod group %s", key)
	}
	return podGroupState(pods), nil
}

// BuildHierarchySnapshotFromPod returns a manager that shows the pod's group alone, as of
// now.
func (g podGroups) BuildHierarchySnapshotFromPod(pod *v1.Pod) (fwk.PodGroupManager, error) {
	if pod.Spec.SchedulingGroup == nil || pod.Spec.SchedulingGroup.PodGroupName == nil {
		return nil, errors.New("pod has no scheduling group")
	}
	key := fwk.PodGroupKey(pod.Namespace, *pod.Spec.SchedulingGroup.PodGroupName)
	object, err := g.PodGroups().Get(key.Namespace, key.Name)
	if err != nil {
		return nil, err
	}
	state, err := g.Get(key.Namespace, key.Name)
	if err != nil {
		return nil, err
	}
	return &oneGroup{g, key, object, state}, nil
}

// GetRootKeyForGroup returns the key of a PodGroup itself: there are no composite pod groups. It
// returns false for another kind of key or if no such group exists, and an error for the key of a
// pod.
func (g podGroups) GetRootKeyForGroup(key fwk.EntityKey) (fwk.EntityKey, bool, error) {
	return rootKey(g.PodGroups(), key)
}

// rootKey returns the key if it is that of a PodGroup that the lister has, else false. The key of a
// pod is an error.
func rootKey(l fwk.PodGroupLister, key fwk.EntityKey) (fwk.EntityKey, bool, error) {
	if key.Type == fwk.PodKeyType {
		return fwk.EntityKey{}, false, fmt.Errorf("pod key type not supported in GetRootKeyForGroup for %s", key)
	}
	if key.Type != fwk.PodGroupKeyType {
		return fwk.EntityKey{}, false, nil
	}
	if _, err := l.Get(key.Namespace, key.Name); err != nil {
		return fwk.EntityKey{}, false, nil
	}
	return key, true, nil
}

// podGroupObjects is the fwk.PodGroupLister of plugins. It reads the informer.
type podGroupObjects struct {
	lister schedulinglisters.PodGroupLister // nil: there is no feature gate
}

// podGroupObjects returns the lister. Only plugins that call it in their factories find
// objects, since the informer is started when all were made.
func (h *Hosts) podGroupObjects() podGroupObjects {
	if !h.options.PodGroups || h.factory == nil {
		return podGroupObjects{}
	}
	return podGroupObjects{h.factory.Scheduling().V1beta1().PodGroups().Lister()}
}

// Get returns the PodGroup as the API server last showed it.
func (o podGroupObjects) Get(namespace, name string) (*schedulingv1beta1.PodGroup, error) {
	if o.lister == nil {
		return nil, errNoPodGroups
	}
	return o.lister.PodGroups(namespace).Get(name)
}

// noCompositeStates is the fwk.CompositePodGroupStateLister of plugins: it always fails.
type noCompositeStates struct{}

// Get returns an error.
func (noCompositeStates) Get(string, string) (fwk.CompositePodGroupState, error) {
	return nil, errNoComposites
}

// noComposites is the fwk.CompositePodGroupLister of plugins: it always fails.
type noComposites struct{}

// Get returns an error.
func (noComposites) Get(string, string) (*schedulingv1alpha3.CompositePodGroup, error) {
	return nil, errNoComposites
}

// oneGroup is the fwk.PodGroupManager of one group as of when it was made.
type oneGroup struct {
	podGroups
	key    fwk.EntityKey
	object *schedulingv1beta1.PodGroup
	state  fwk.PodGroupState
}

// PodGroupStates returns a lister of the group's pods.
func (g *oneGroup) PodGroupStates() fwk.PodGroupStateLister { return g }

// PodGroups returns a lister of the group's object.
func (g *oneGroup) PodGroups() fwk.PodGroupLister { return oneObject{g.object} }

// Get returns the pods of the group, or an error for another group.
func (g *oneGroup) Get(namespace, name string) (fwk.PodGroupState, error) {
	if namespace != g.key.Namespace || name != g.key.Name {
		return nil, fmt.Errorf("pod group state not found for pod group %s/%s", namespace, name)
	}
	return g.state, nil
}

// BuildHierarchySnapshotFromPod returns g.
func (g *oneGroup) BuildHierarchySnapshotFromPod(*v1.Pod) (fwk.PodGroupManager, error) { return g, nil }

// GetRootKeyForGroup returns the key of the group itself. It returns false for another group, and
// an error for the key of a pod.
func (g *oneGroup) GetRootKeyForGroup(key fwk.EntityKey) (fwk.EntityKey, bool, error) {
	return rootKey(g.PodGroups(), key)
}

// oneObject is the fwk.PodGroupLister of one PodGroup.
type oneObject struct{ *schedulingv1beta1.PodGroup }

// Get returns the PodGroup, or an error for another name.
func (o oneObject) Get(namespace, name string) (*schedulingv1beta1.PodGroup, error) {
	if namespace != o.Namespace || name != o.Name {
		return nil, fmt.Errorf("pod group state not found for pod group %s", fwk.PodGroupKey(namespace, name))
	}
	return o.PodGroup, nil
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

// UnscheduledPods returns the pods without a node, by name. Handle.Activate takes such a map.
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
	again  any                // the machine's GroupAgain for which trial was made; nil: none
	trial  *cycleState        // stands for state in a try for a plugin that searches victims

	tries map[string]*groupTry // the last try in each placement, by its name; "": all nodes
	// assignments are the objects that plugins got for core's.
	assignments map[*framework.PodGroupAssignments]*fwk.PodGroupAssignments
}

// groupTry is a try of a pod group's cycle to place the group in one placement.
type groupTry struct {
	of    any                       // the machine's GroupTry
	state *cycleState               // data that plugins store for the placement
	pods  map[types.UID]*cycleState // of the pods' attempts, by UID
}

// groupState returns the state of the group's cycle under way, which plugins store data in.
// It makes a new one when a cycle begins, and for each try for a plugin that searches victims.
func (h *Host) groupState(name types.NamespacedName) *cycleState {
	if of := h.machine.GroupCycle(); h.lastGroup.of != of {
		h.lastGroup = lastGroup{of: of, state: &cycleState{}, name: name, before: h.machine.GroupPods(name, false), tries: map[string]*groupTry{},
			assignments: map[*framework.PodGroupAssignments]*fwk.PodGroupAssignments{}}
	}
	again := h.machine.GroupAgain()
	if again == nil {
		return h.lastGroup.state
	}
	if h.lastGroup.again != again {
		h.lastGroup.again, h.lastGroup.trial = again, &cycleState{}
	}
	return h.lastGroup.trial
}

// groupTry returns the try under way of the group's cycle. It makes a new one when a try
// begins.
func (h *Host) groupTry() *groupTry {
	of, placement := h.machine.GroupTry()
	try := h.lastGroup.tries[placement]
	if try == nil || try.of != of {
		try = &groupTry{of, &cycleState{group: h.groupState(h.lastGroup.name)}, map[types.UID]*cycleState{}}
		h.lastGroup.tries[placement] = try
	}
	return try
}

// inGroup sets the states of the group and of its placement in the attempt's CycleState if
// the cycle of a pod group is under way, else clears them. It returns c.
func (c *cycle) inGroup() *cycle {
	h := c.host
	if h.machine == nil {
		return c
	}
	of := h.machine.GroupCycle()
	switch {
	case of == nil && c.state.group != nil:
		c.state.group, c.state.placement = nil, nil
		return c
	case of == nil:
		return c
	}
	if state := h.groupState(c.object.GroupKey()); c.state.group == nil {
		try := h.groupTry()
		c.state.group, c.state.placement, try.pods[c.object.UID] = state, try.state, c.state
	}
	return c
}

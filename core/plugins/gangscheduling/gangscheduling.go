package gangscheduling

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/group"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

// timeout is how long a pod that has a node waits for the others of its gang.
const timeout = 5 * time.Minute

// New returns the plugin.
func New() framework.Plugin {
	return framework.Plugin{
		Name:  names.GangScheduling,
		Reads: framework.Reads{Kinds: []object.Kind{object.PodGroups}},
		EventsToRegister: []framework.ClusterEventWithHint{
			{Resource: framework.AssignedPod, ActionType: framework.Add, QueueingHintFn: podAdded},
			{Resource: framework.UnscheduledPod, ActionType: framework.Add, QueueingHintFn: podAdded},
			{Resource: framework.ResourceOf(object.PodGroups), ActionType: framework.Add, QueueingHintFn: groupAdded, Names: groupName},
			{Resource: framework.ResourceOf(object.PodGroups), ActionType: framework.UpdateOther, QueueingHintFn: groupUpdated, Names: groupName},
		},
		PreEnqueue: preEnqueue,
		Permit:     permit,
		PodGroup:   &framework.PodGroupPlugin{PlacementFeasible: placementFeasible},
	}
}

// podAdded reports whether the new pod may complete the rejected pod's gang.
func podAdded(p *object.Pod, e *framework.Event) bool {
	return p.PodGroup() != "" && p.GroupKey() == e.NewPod.GroupKey()
}

// groupAdded reports whether the new PodGroup is the rejected pod's.
func groupAdded(p *object.Pod, e *framework.Event) bool {
	g := e.NewObject.Head()
	return p.PodGroup() == g.Name && p.Namespace == g.Namespace
}

// groupName returns the name of the pod's PodGroup, as a list; nil if it names none.
func groupName(p *object.Pod) []string {
	if p.PodGroup() == "" {
		return nil
	}
	return []string{p.PodGroup()}
}

// groupUpdated reports whether MinCount of the rejected pod's gang was lowered.
func groupUpdated(p *object.Pod, e *framework.Event) bool {
	was, _ := e.OldObject.(*object.PodGroup)
	is, _ := e.NewObject.(*object.PodGroup)
	return was != nil && is != nil && groupAdded(p, e) && was.Gang && is.Gang && is.MinCount < was.MinCount
}

// required returns how many pods of the group must have a node together: 1 for one that is no
// gang, else MinCount. It is 1, too, for a gang that was placed once, of which a pod is still
// bound and is not being deleted, and of which fewer than MinCount pods are known. Others of it
// have finished or were lost then, and whoever takes their place need not wait for them.
// (kube-scheduler counts what it still sees, and such a pod waits for ever.) That a gang which
// is not Kubernetes' own was placed once, its bound pods say: they may also be those that a
// leader bound before it died. While MinCount pods are known, those that wait are placed
// together then, or none. It is MinCount, too, for a gang whose minimum rose while it was half
// bound (Raised): such a gang has lost no pods.
func required(t *table.Table, g *object.PodGroup, pods *group.Group) int {
	if !g.Gang || (g.Scheduled.Status == v1.ConditionTrue || g.Source != "") && pods.Len() < g.MinCount && !pods.Raised() && anyStays(t, pods) {
		return 1
	}
	return g.MinCount
}

// anyStays reports whether a pod of the group is bound and not being deleted.
func anyStays(t *table.Table, pods *group.Group) bool {
	for uid := range pods.Assigned() {
		if !t.Pod(uid).Pod.Terminating {
			return true
		}
	}
	return false
}

// placementFeasible returns nil if as many pods of the group have a node as it requires, Wait if
// those that remain may be enough, and Unschedulable if not, or if the group has a Fault.
func placementFeasible(t *table.Table, g *object.PodGroup, p framework.PlacementProgress) *decision.Status {
	if g.Fault != "" {
		return &decision.Status{Code: decision.Unschedulable, Reasons: []string{g.Fault}}
	}
	n := required(t, g, t.Groups().Named(g.GroupKey()))
	switch {
	case p.Remaining+p.Scheduled < n:
		return &decision.Status{Code: decision.Unschedulable, Reasons: []string{
			fmt.Sprintf("minCount (%d) cannot be satisfied: %d scheduled, %d remaining", n, p.Scheduled, p.Remaining)}}
	case p.Scheduled < n:
		return &decision.Status{Code: decision.Wait, Reasons: []string{
			fmt.Sprintf("minCount (%d) is not yet satisfied: %d scheduled, %d remaining", n, p.Scheduled, p.Remaining)}}
	}
	return nil
}

// preEnqueue gates the pod until its PodGroup exists and, for a gang, has as many pods as it
// requires. A group with a Fault is not gated: placementFeasible rejects it.
func preEnqueue(t *table.Table, p *object.Pod) *decision.Status {
	if p.PodGroup() == "" {
		return nil
	}
	g := table.PodGroup(t, p.GroupKey())
	switch pods := t.Groups().Of(p); {
	case g == nil && p.KubernetesGroup() == "":
		return rejected(fmt.Sprintf("PodGroup %s not found", p.PodGroup()))
	case g == nil:
		return rejected(fmt.Sprintf("waiting for pods's pod group %q to appear in scheduling queue", p.PodGroup()))
	case g.Fault != "" || !g.Gang || pods.Len() >= required(t, g, pods):
		return nil
	case g.Source == object.SchedulerPlugins:
		return rejected(fmt.Sprintf("waiting for as many pods as spec.minMember (%d) of PodGroup %s", g.MinCount, p.PodGroup()))
	}
	return rejected("waiting for minCount pods from a gang to appear in scheduling queue")
}

// rejected returns an UnschedulableAndUnresolvable status.
func rejected(reason string) *decision.Status {
	return &decision.Status{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{reason}}
}

// permit holds the pod until enough pods of its gang have a node, and then allows the
// ones held before. It fails if the PodGroup does not exist. kube-scheduler also activates the
// waiting pods of the gang; the machine has them in its cycle already.
func permit(t *table.Table, p *object.Pod, _ string) framework.PermitResult {
	if p.PodGroup() == "" {
		return framework.PermitResult{}
	}
	g := table.PodGroup(t, p.GroupKey())
	if g == nil {
		return framework.PermitResult{Status: &decision.Status{Code: decision.Error,
			Err: fmt.Errorf("failed to get podGroup %s: podgroup.scheduling.k8s.io %q not found", p.GroupKey(), p.PodGroup())}}
	}
	if !g.Gang {
		return framework.PermitResult{}
	}
	pods := t.Groups().Of(p)
	if pods.Scheduled() < required(t, g, pods) {
		return framework.PermitResult{
			Status:  &decision.Status{Code: decision.Wait, Reasons: []string{"waiting for minCount pods from a gang to be scheduled"}},
			Timeout: timeout,
		}
	}
	return framework.PermitResult{Allow: slices.Collect(pods.Assumed())}
}

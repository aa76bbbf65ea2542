package gangscheduling

import (
	"fmt"
	"slices"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
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
			{Resource: framework.ResourceOf(object.PodGroups), ActionType: framework.Add, QueueingHintFn: groupAdded},
		},
		PreEnqueue: preEnqueue,
		Permit:     permit,
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

// groupOf returns the pod's PodGroup; nil if it does not exist.
func groupOf(t *table.Table, p *object.Pod) *object.PodGroup {
	return table.Lookup[*object.PodGroup](t, object.PodGroups, p.Namespace, p.PodGroup())
}

// preEnqueue gates the pod until its PodGroup exists and, for a gang, has MinCount pods.
func preEnqueue(t *table.Table, p *object.Pod) *decision.Status {
	if p.PodGroup() == "" {
		return nil
	}
	g := groupOf(t, p)
	if g == nil {
		return rejected(fmt.Sprintf("waiting for pods's pod group %q to appear in scheduling queue", p.PodGroup()))
	}
	if g.Gang && t.Groups().Of(p).Len() < g.MinCount {
		return rejected("waiting for minCount pods from a gang to appear in scheduling queue")
	}
	return nil
}

// rejected returns an UnschedulableAndUnresolvable status.
func rejected(reason string) *decision.Status {
	return &decision.Status{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{reason}}
}

// permit holds the pod until enough pods of its gang have a node, and then allows the
// ones held before. v1.36 also activates the waiting pods of the gang; the machine has
// them in its cycle already.
func permit(t *table.Table, p *object.Pod, _ string) framework.PermitResult {
	if p.PodGroup() == "" {
		return framework.PermitResult{}
	}
	g := groupOf(t, p)
	if g == nil {
		return framework.PermitResult{Status: &decision.Status{Code: decision.Error,
			Err: fmt.Errorf("failed to get podGroup %s: podgroup.scheduling.k8s.io %q not found", p.GroupKey(), p.PodGroup())}}
	}
	if !g.Gang {
		return framework.PermitResult{}
	}
	pods := t.Groups().Of(p)
	if pods.Scheduled() < g.MinCount {
		return framework.PermitResult{
			Status:  &decision.Status{Code: decision.Wait, Reasons: []string{"waiting for minCount pods from a gang to be scheduled"}},
			Timeout: timeout,
		}
	}
	return framework.PermitResult{Allow: slices.Collect(pods.Assumed())}
}

package queue

import (
	"iter"
	"maps"
	"math/bits"
	"slices"
	"strconv"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// Labels of what moves pods and is no event in the cluster, as v1.36's metric
// queue_incoming_pods_total has them.
const (
	eventAttemptFailure       = "ScheduleAttemptFailure"
	eventBackoffComplete      = "BackoffComplete"
	eventPopFromBackoff       = "PopFromBackoffQ"
	eventActivate             = "ForceActivate"
	eventUnschedulableTimeout = "UnschedulableTimeout"
	eventReconfigured         = "Reconfigured" // not in v1.36, which cannot
	eventPopped               = "PodPopped"    // in inflight_events
	// What moves pods, and is not in the metric.
	eventDelete      = "Delete"
	eventSkipBackoff = "SkipBackoff"
)

var resourceLabels = [...]string{
	framework.AssignedPod:    "AssignedPod",
	framework.UnscheduledPod: "UnschedulablePod",
	framework.Node:           "Node",
	framework.Namespace:      "Namespace",
	framework.SelectorOwner:  "SelectorOwner",
	framework.HostedObject:   "Other",
	framework.WildCard:       "*",
}

func resourceLabel(r framework.EventResource) string {
	if kind, ok := r.Kind(); ok {
		return kind.EventResource()
	}
	return resourceLabels[r]
}

var actionLabels = map[framework.ActionType]string{
	framework.Add:                                "Add",
	framework.Delete:                             "Delete",
	framework.UpdateNodeAllocatable:              "UpdateNodeAllocatable",
	framework.UpdateNodeLabel:                    "UpdateNodeLabel",
	framework.UpdateNodeTaint:                    "UpdateNodeTaint",
	framework.UpdateNodeCondition:                "UpdateNodeCondition",
	framework.UpdateNodeAnnotation:               "UpdateNodeAnnotation",
	framework.UpdateNodeDeclaredFeature:          "UpdateNodeDeclaredFeature",
	framework.UpdatePodLabel:                     "UpdatePodLabel",
	framework.UpdatePodScaleDown:                 "UpdatePodScaleDown",
	framework.UpdatePodSchedulingGatesEliminated: "UpdatePodSchedulingGatesEliminated",
	framework.UpdatePodToleration:                "UpdatePodToleration",
	framework.UpdatePodGeneratedResourceClaim:    "UpdatePodGeneratedResourceClaim",
	framework.UpdateNamespaceLabel:               "UpdateNamespaceLabel",
	framework.UpdateSelector:                     "UpdateSelector",
	framework.UpdatePodTerminating:               "Update",
	framework.UpdateOther:                        "Update",
}

// Label returns v1.36's name of the event: AssignedPodDelete, NodeAdd. Of several actions
// the first counts.
func Label(r framework.EventResource, a framework.ActionType) string {
	if a == framework.All {
		return resourceLabel(r) + "All"
	}
	first := a & -a
	if name, ok := actionLabels[first]; ok {
		return resourceLabel(r) + name
	}
	return resourceLabel(r) + strconv.Itoa(bits.TrailingZeros32(uint32(first)))
}

// single yields the actions one by one.
func single(actions framework.ActionType) iter.Seq[framework.ActionType] {
	return func(yield func(framework.ActionType) bool) {
		for ; actions != 0; actions &= actions - 1 {
			if !yield(actions & -actions) {
				return
			}
		}
	}
}

// Changes returns how the newer state of a pod differs from the older one, as the actions
// of an event on it. UpdateOther stands alone, for "nothing of these". 0 means that only
// the scheduler wrote: such a change helps no pod, and a pod that its own condition
// called would be tried, and get a condition, without end. Like v1.36, it treats a
// request that is gone as one scaled down.
func Changes(old, new *object.Pod) framework.ActionType {
	var changes framework.ActionType
	if !maps.Equal(old.Labels, new.Labels) {
		changes |= framework.UpdatePodLabel
	}
	if scaledDown(old.Demand.Usage, new.Demand.Usage) || scaledDown(old.Demand.Requests, new.Demand.Requests) {
		changes |= framework.UpdatePodScaleDown
	}
	if len(old.Gates) > 0 && len(new.Gates) == 0 {
		changes |= framework.UpdatePodSchedulingGatesEliminated
	}
	if old.Tolerations.Key != new.Tolerations.Key {
		changes |= framework.UpdatePodToleration
	}
	if !old.Terminating && new.Terminating {
		changes |= framework.UpdatePodTerminating
	}
	if !slices.Equal(old.Claims, new.Claims) {
		changes |= framework.UpdatePodGeneratedResourceClaim
	}
	if changes == 0 && !object.OnlySchedulerWrote(old, new) {
		changes = framework.UpdateOther
	}
	return changes
}

func scaledDown(old, new resource.Vector) bool {
	if new.MilliCPU < old.MilliCPU || new.Memory < old.Memory || new.EphemeralStorage < old.EphemeralStorage {
		return true
	}
	for _, s := range old.Scalars {
		if new.Of(s.Name) < s.Value {
			return true
		}
	}
	return false
}

package decode

import (
	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/berth-scheduler/berth/core/object"
)

func podGroup(g *schedulingv1beta1.PodGroup) *object.PodGroup {
	decoded := &object.PodGroup{Meta: meta(object.PodGroups, &g.ObjectMeta), Created: g.CreationTimestamp.Time, Generation: g.Generation,
		Required: g.Annotations[object.RequiredTopology], Preferred: g.Annotations[object.PreferredTopology]}
	if gang := g.Spec.SchedulingPolicy.Gang; gang != nil {
		decoded.Gang, decoded.MinCount = true, int(gang.MinCount)
	}
	if c := g.Spec.SchedulingConstraints; c != nil && len(c.Topology) > 0 { // the API takes no more than one
		decoded.TopologyKey = c.Topology[0].Key
	}
	if g.Spec.Priority != nil {
		decoded.Priority = *g.Spec.Priority
	}
	decoded.PreemptedWhole = g.Spec.DisruptionMode != nil && g.Spec.DisruptionMode.All != nil
	for i := range g.Status.Conditions {
		if c := &g.Status.Conditions[i]; c.Type == schedulingv1beta1.PodGroupInitiallyScheduled {
			decoded.Scheduled = object.GroupCondition{Status: v1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
				ObservedGeneration: c.ObservedGeneration}
		}
	}
	return decoded
}

// PodGroupName returns the name of the PodGroup in spec.schedulingGroup, "" for none.
func PodGroupName(spec *v1.PodSpec) string {
	if g := spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		return *g.PodGroupName
	}
	return ""
}

package framework

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
)

// NodeSchedulingPropertiesChange returns the update actions by which the node changed; 0 if
// nothing that matters to scheduling did (as kube-scheduler's nodeSchedulingPropertiesChange).
func NodeSchedulingPropertiesChange(old, now *object.Node) ActionType {
	var a ActionType
	if old.AllowedPods != now.AllowedPods || !old.Allocatable.Equal(now.Allocatable) {
		a |= UpdateNodeAllocatable
	}
	if !maps.Equal(old.Labels, now.Labels) {
		a |= UpdateNodeLabel
	}
	if (old.Unschedulable && !now.Unschedulable) || !slices.EqualFunc(old.Taints, now.Taints, object.SameTaint) {
		a |= UpdateNodeTaint
	}
	if !slices.Equal(old.Conditions, now.Conditions) {
		a |= UpdateNodeCondition
	}
	if !maps.Equal(old.Annotations, now.Annotations) {
		a |= UpdateNodeAnnotation
	}
	if !slices.Equal(old.Features, now.Features) {
		a |= UpdateNodeDeclaredFeature
	}
	if !samePolicy(old.PreemptionPolicy, now.PreemptionPolicy) {
		a |= UpdateNodePreemptionPolicy
	}
	return a
}

// samePolicy reports whether two policies are equal; no policy is not an empty one.
func samePolicy(a, b *v1.NodePodPreemptionPolicy) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.Equal(a.DisableResizePreemption, b.DisableResizePreemption)
}

package resource

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"
)

// What the scoring of NodeResourcesFit counts for a container that requests
// nothing (kube-scheduler v1.36, pkg/scheduler/util/pod_resources.go).
const (
	DefaultMilliCPU = 100               // 0.1 core
	DefaultMemory   = 200 * 1024 * 1024 // 200 MiB
)

// Demand is everything that a scheduler counts for a pod, computed once.
type Demand struct {
	// Requests is what must fit on the node (NodeResourcesFit's filter): the
	// larger of the init sequence and the running containers, plus overhead;
	// pod-level resources override.
	Requests Vector
	// Usage is what the pod takes from its node once placed. It differs from
	// Requests while an in-place resize is under way.
	Usage Vector
	// NonZero is Usage with a default for each container that names no CPU or
	// memory. Only these two are set.
	NonZero Vector
	// Scoring is what NodeResourcesFit's score counts for the pod: defaults
	// filled in, pod-level resources left out (as v1.36 does).
	Scoring Vector
}

// OfPod computes the pod's demand.
func OfPod(pod *v1.Pod) Demand {
	defaults := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(DefaultMilliCPU, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(DefaultMemory, resource.BinarySI),
	}
	placed := helper.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true}
	usage := helper.PodRequests(pod, placed)
	placed.InPlacePodLevelResourcesVerticalScalingEnabled = true
	placed.NonMissingContainerRequests = defaults
	if helper.IsPodLevelRequestsSet(pod) {
		placed.NonMissingContainerRequests = missing(defaults, usage)
	}
	nonZero := FromList(helper.PodRequests(pod, placed))
	return Demand{
		Requests: FromList(helper.PodRequests(pod, helper.PodResourcesOptions{})),
		Usage:    FromList(usage),
		NonZero:  Vector{MilliCPU: nonZero.MilliCPU, Memory: nonZero.Memory},
		Scoring: FromList(helper.PodRequests(pod, helper.PodResourcesOptions{
			SkipPodLevelResources: true, NonMissingContainerRequests: defaults,
		})),
	}
}

// missing returns the defaults for the resources that the pod as a whole does
// not name.
func missing(defaults, named v1.ResourceList) v1.ResourceList {
	left := v1.ResourceList{}
	for name, q := range defaults {
		if _, ok := named[name]; !ok {
			left[name] = q
		}
	}
	return left
}

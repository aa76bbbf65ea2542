package resource

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	helper "k8s.io/component-helpers/resource"
)

// WithDevices returns the pod's demand if its devices take exactly these amounts of its
// node's resources (status.nodeAllocatableResourceClaimStatuses), whatever the pod's status
// says.
func WithDevices(pod *v1.Pod, taken []v1.NodeAllocatableResourceClaimStatus) Demand {
	return OfPod(withDevices(pod, taken))
}

// withDevices returns a copy of the pod whose status says that devices take these amounts,
// to compute its demand with them.
func withDevices(pod *v1.Pod, taken []v1.NodeAllocatableResourceClaimStatus) *v1.Pod {
	with := *pod
	with.Status.NodeAllocatableResourceClaimStatuses = taken
	return &with
}

// RequestsWithDevices returns what the pod requests plus what these devices take of the
// node's resources.
func RequestsWithDevices(pod *v1.Pod, taken []v1.NodeAllocatableResourceClaimStatus) Vector {
	return fromPod(podRequests(saturate(withDevices(pod, taken)), helper.PodResourcesOptions{UseDRANodeAllocatableResourceClaimStatus: true}))
}

// Uncovered returns the first resource, by name, of which the pod's pod-level requests are
// less than what its containers and these devices need together; "" if there is none.
func Uncovered(pod *v1.Pod, taken []v1.NodeAllocatableResourceClaimStatus) v1.ResourceName {
	if pod.Spec.Resources == nil || pod.Spec.Resources.Requests == nil {
		return ""
	}
	pod = saturate(withDevices(pod, taken))
	opts := helper.PodResourcesOptions{UseDRANodeAllocatableResourceClaimStatus: true}
	requested := podRequests(pod, opts)
	opts.SkipPodLevelResources = true
	var short []v1.ResourceName
	for name, needed := range podRequests(pod, opts) { // any order: sorted below
		if q, there := requested[name]; there && needed.Cmp(q) > 0 {
			short = append(short, name)
		}
	}
	if len(short) == 0 {
		return ""
	}
	return slices.Min(short)
}

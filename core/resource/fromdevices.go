package resource

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	helper "k8s.io/component-helpers/resource"
)

// WithDevices returns the pod's demand if its devices take exactly the amounts in taken of its
// node's resources (status.nodeAllocatableResourceClaimStatuses), whatever the pod's own status
// says.
func WithDevices(pod *v1.Pod, taken []v1.NodeAllocatableResourceClaimStatus) Demand {
	return OfPod(withDevices(pod, taken))
}

// withDevices returns a shallow copy of the pod whose status says that devices take the amounts in
// taken, to compute its demand with them.
func withDevices(pod *v1.Pod, taken []v1.NodeAllocatableResourceClaimStatus) *v1.Pod {
	with := *pod
	with.Status.NodeAllocatableResourceClaimStatuses = taken
	return &with
}

// RequestsWithDevices returns what the pod requests plus the amounts in taken, which its devices
// take of the node's resources.
func RequestsWithDevices(pod *v1.Pod, taken []v1.NodeAllocatableResourceClaimStatus) Vector {
	return fromPod(podRequests(saturate(withDevices(pod, taken)), helper.PodResourcesOptions{UseDRANodeAllocatableResourceClaimStatus: true}))
}

// Uncovered returns why the requests or limits that the pod states as a whole (spec.resources) do
// not cover what its containers need together with taken, which its devices take of the node's
// resources. It returns "" if they do, if the pod states none, or if taken is empty. The reason
// names one resource: requests are checked first, then limits of huge pages, then the other limits
// of each container, and of several resources the first by name is taken.
func Uncovered(pod *v1.Pod, taken []v1.NodeAllocatableResourceClaimStatus) (reason string) {
	if pod.Spec.Resources == nil || len(taken) == 0 {
		return ""
	}
	pod = saturate(withDevices(pod, taken))
	opts := helper.PodResourcesOptions{SkipPodLevelResources: true, UseDRANodeAllocatableResourceClaimStatus: true}
	if own := pod.Spec.Resources.Requests; own != nil {
		if name := exceeding(helper.AggregateContainerRequests(pod, opts), own, helper.IsSupportedPodLevelResource); name != "" {
			return fmt.Sprintf("pod level request for %s is insufficient to cover the aggregated container and node-allocatable DRA requests", name)
		}
	}
	own := pod.Spec.Resources.Limits
	if own == nil {
		return ""
	}
	if name := exceeding(helper.AggregateContainerLimits(pod, opts), own, isHugePages); name != "" {
		return fmt.Sprintf("pod level limit for %s is insufficient to cover the aggregated container and node-allocatable DRA limits", name)
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		devices, limits := helper.GetContainerDRAAllocations(pod, c.Name), c.Resources.Limits.DeepCopy()
		for name, q := range limits { // any order: each value by itself
			q.Add(devices[name])
			limits[name] = q
		}
		if name := exceeding(limits, own, func(name v1.ResourceName) bool { return !isHugePages(name) }); name != "" {
			return fmt.Sprintf("pod level limit for %s is insufficient to cover the limit and DRA overhead for container %s", name, c.Name)
		}
	}
	return ""
}

// exceeding returns the first resource, by name, of which more is needed than stated; "" if there
// is none. It skips resources that stated does not list, and those for which counts is false.
func exceeding(needed, stated v1.ResourceList, counts func(v1.ResourceName) bool) v1.ResourceName {
	var names []v1.ResourceName
	for name, q := range needed { // any order: the first by name is taken
		if own, there := stated[name]; there && counts(name) && q.Cmp(own) > 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}

// isHugePages reports whether the resource is huge pages of some size.
func isHugePages(name v1.ResourceName) bool {
	return strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}

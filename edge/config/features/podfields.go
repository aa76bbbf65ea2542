package features

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/featuregate"
)

// These gates decide which resources of a pod as a whole, and of its containers, count.
const (
	InPlacePodVerticalScaling               featuregate.Feature = "InPlacePodVerticalScaling"
	PodLevelResources                       featuregate.Feature = "PodLevelResources"
	InPlacePodLevelResourcesVerticalScaling featuregate.Feature = "InPlacePodLevelResourcesVerticalScaling"
)

// PodFields returns a function that returns the pod without the fields that
// kube-scheduler v1.37 ignores under the gates: the resources of the whole pod in its
// spec without PodLevelResources, those in its status also without
// InPlacePodLevelResourcesVerticalScaling, what containers have got and what became of a
// resize without InPlacePodVerticalScaling, what devices take of the node's resources without
// DRANodeAllocatableResources. The function changes no pod that it is
// given. It returns the same pod where nothing is to be ignored.
func PodFields(gates featuregate.FeatureGate) func(*v1.Pod) *v1.Pod {
	spec := gates.Enabled(PodLevelResources)
	status := spec && gates.Enabled(InPlacePodLevelResourcesVerticalScaling)
	containers := gates.Enabled(InPlacePodVerticalScaling)
	devices := gates.Enabled("DRANodeAllocatableResources")
	return func(p *v1.Pod) *v1.Pod {
		clearSpec := !spec && p.Spec.Resources != nil
		clearStatus := !status && (p.Status.Resources != nil || p.Status.AllocatedResources != nil)
		clearContainers := !containers && len(p.Status.ContainerStatuses)+len(p.Status.InitContainerStatuses)+len(p.Status.Conditions) > 0
		clearDevices := !devices && p.Status.NodeAllocatableResourceClaimStatuses != nil
		if !clearSpec && !clearStatus && !clearContainers && !clearDevices {
			return p
		}
		read := *p
		if clearDevices {
			read.Status.NodeAllocatableResourceClaimStatuses = nil
		}
		if clearContainers {
			read.Status.ContainerStatuses = withoutResources(p.Status.ContainerStatuses)
			read.Status.InitContainerStatuses = withoutResources(p.Status.InitContainerStatuses)
			read.Status.Conditions = slices.DeleteFunc(slices.Clone(p.Status.Conditions), func(c v1.PodCondition) bool { return c.Type == v1.PodResizePending })
		}
		if clearSpec {
			read.Spec.Resources = nil
		}
		if clearStatus {
			read.Status.Resources, read.Status.AllocatedResources = nil, nil
		}
		return &read
	}
}

// withoutResources are the statuses without what the containers have got.
func withoutResources(of []v1.ContainerStatus) []v1.ContainerStatus {
	read := slices.Clone(of)
	for i := range read {
		read[i].Resources, read[i].AllocatedResources = nil, nil
	}
	return read
}

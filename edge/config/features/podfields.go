package features

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/featuregate"
)

// PodLevel gates decide which resources of a pod as a whole count.
const (
	PodLevelResources                       featuregate.Feature = "PodLevelResources"
	InPlacePodLevelResourcesVerticalScaling featuregate.Feature = "InPlacePodLevelResourcesVerticalScaling"
)

// PodFields returns a function that returns the pod without the fields that
// kube-scheduler v1.36 ignores under the gates: the resources of the whole pod in its
// spec without PodLevelResources, those in its status also without
// InPlacePodLevelResourcesVerticalScaling. The function changes no pod that it is
// given. It returns the same pod where nothing is to be ignored.
func PodFields(gates featuregate.FeatureGate) func(*v1.Pod) *v1.Pod {
	spec := gates.Enabled(PodLevelResources)
	status := spec && gates.Enabled(InPlacePodLevelResourcesVerticalScaling)
	return func(p *v1.Pod) *v1.Pod {
		clearSpec := !spec && p.Spec.Resources != nil
		clearStatus := !status && (p.Status.Resources != nil || p.Status.AllocatedResources != nil)
		if !clearSpec && !clearStatus {
			return p
		}
		read := *p
		if clearSpec {
			read.Spec.Resources = nil
		}
		if clearStatus {
			read.Status.Resources, read.Status.AllocatedResources = nil, nil
		}
		return &read
	}
}

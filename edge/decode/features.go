package decode

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	baseversion "k8s.io/component-base/version"
	features "k8s.io/component-helpers/nodedeclaredfeatures"
)

// target is the version of Kubernetes that the scheduler stands for.
var target = version.MustParseSemantic(baseversion.DefaultKubeBinaryVersion + ".0")

// neededFeatures lists the features that the spec calls for, sorted.
func neededFeatures(spec *v1.PodSpec) []string {
	set, err := features.DefaultFramework.InferForPodScheduling(&features.PodInfo{Spec: spec}, target)
	if err != nil || set.IsEmpty() { // it fails only without a target
		return nil
	}
	names, _ := features.DefaultFramework.Unmap(set) // fails only for another list's set
	return names
}

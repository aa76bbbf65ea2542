package resource

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// SpecsOrDefault returns the resources by which a plugin scores: cpu and memory if the list is
// empty. Those of weight 0 get weight 1, in place.
func SpecsOrDefault(list []configv1.ResourceSpec) []configv1.ResourceSpec {
	if len(list) == 0 {
		list = []configv1.ResourceSpec{{Name: string(v1.ResourceCPU)}, {Name: string(v1.ResourceMemory)}}
	}
	for i := range list {
		list[i].Weight = cmp.Or(list[i].Weight, 1)
	}
	return list
}

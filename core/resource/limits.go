package resource

import (
	v1 "k8s.io/api/core/v1"
	helper "k8s.io/component-helpers/resource"
)

// Limits returns the sum of the pod's limits, computed as requests are (init containers, sidecars,
// limits of the pod as a whole), with the overhead for resources that have a limit. It is nil if
// nothing in the pod has a limit. No decision depends on it.
func Limits(pod *v1.Pod) *Vector {
	if !limited(pod) {
		return nil
	}
	c := count{pod: pod, limits: true}
	sum := c.containers(specified)
	if r := pod.Spec.Resources; r != nil {
		own := c.read(r.Limits)
		for name := range r.Limits { // any order: each name has a slot of its own
			if i, ok := c.slot(name); ok && helper.IsSupportedPodLevelResource(name) {
				sum.slot[i] = own.slot[i]
			}
		}
	}
	overhead := c.read(pod.Spec.Overhead)
	for i := range sum.slot {
		if sum.slot[i] == 0 {
			overhead.slot[i] = 0
		}
	}
	sum.add(&overhead)
	v := c.vector(&sum)
	if c.inexact {
		v = fromPod(helper.PodLimits(saturate(pod), helper.PodResourcesOptions{}))
	}
	return &v
}

// limited reports whether the pod as a whole or one of its containers, init containers included,
// has a limit.
func limited(pod *v1.Pod) bool {
	if r := pod.Spec.Resources; r != nil && len(r.Limits) > 0 {
		return true
	}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if len(list[i].Resources.Limits) > 0 {
				return true
			}
		}
	}
	return false
}

package object

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// OnlySchedulerWrote reports whether two states of a pod differ only in what the scheduler
// writes to a pod's status, or not at all, so that the change wakes no pod. It returns false if
// the API objects are not kept (Pod.API), or the pod was bound.
func OnlySchedulerWrote(old, now *Pod) bool {
	if old.API == nil || now.API == nil || old.UID != now.UID || old.NodeName != now.NodeName {
		return false
	}
	return old.API == now.API || equality.Semantic.DeepEqual(withoutOurs(old.API), withoutOurs(now.API))
}

// withoutOurs returns a copy of the pod without the fields that the scheduler writes, and
// without those that the API server changes with every write. The copy shares the rest.
func withoutOurs(p *v1.Pod) *v1.Pod {
	c := *p
	c.ResourceVersion, c.ManagedFields = "", nil
	c.Status.NominatedNodeName = ""
	c.Status.Conditions = slices.DeleteFunc(slices.Clone(p.Status.Conditions), func(c v1.PodCondition) bool {
		return c.Type == v1.PodScheduled || c.Type == v1.DisruptionTarget && c.Reason == v1.PodReasonPreemptionByScheduler
	})
	return &c
}

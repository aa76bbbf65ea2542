package quota

import (
	"iter"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
)

// Ask is the question whether a pod may be placed as far as quotas are concerned.
type Ask struct {
	Pod *object.Pod
	// Nominated are the pods that are nominated to nodes, in any order; nil stands for none.
	// The pod itself is ignored among them.
	Nominated iter.Seq[*object.Pod]
	// UnlistedZero makes a list that is there, but does not name CPU, memory or ephemeral
	// storage, have 0 of it, and each min that does not name a resource, or is absent, have
	// 0 of that. Otherwise a resource that a list does not name is not bounded by it.
	UnlistedZero bool
}

// Excess is a limit that a pod would exceed.
type Excess struct {
	// Queue is the one whose max would be exceeded: that of the pod or an ancestor. nil
	// stands for the sum of all mins.
	Queue    *Queue
	Resource v1.ResourceName
	// Used is what is in use, and Nominated what is kept for nominated pods; Requested is
	// what the pod requests.
	Used, Nominated, Requested, Limit int64
}

// waiting is a nominated pod and its queue.
type waiting struct {
	*Queue
	pod *object.Pod
}

// Exceeded returns the limit that the pod would exceed if it were placed now: first the
// maxes, from its own queue up, then the sum of the mins. It is nil if there is none, or the
// pod has no queue. Only resources that the pod requests count.
func (x *Index) Exceeded(a *Ask) *Excess {
	q := x.Queue(a.Pod.Namespace)
	if q == nil {
		return nil
	}
	nominated := x.waiting(a)
	for n := q; n != nil; n = n.parent {
		if found := x.overMax(a, n, nominated); found != nil {
			return found
		}
	}
	return x.overMins(a, q, nominated)
}

// waiting returns the nominated pods that have a queue, except the pod of the question.
func (x *Index) waiting(a *Ask) (list []waiting) {
	if a.Nominated == nil {
		return nil
	}
	for p := range a.Nominated {
		if q := x.queues[p.Namespace]; q != nil && p.UID != a.Pod.UID {
			list = append(list, waiting{q, p})
		}
	}
	return list
}

// overMax returns the first resource of which the queue n, that of the pod or an ancestor,
// would use more than its max. Nominated pods count if they are in n and not less important
// than the pod.
func (x *Index) overMax(a *Ask, n *Queue, nominated []waiting) (found *Excess) {
	each(a.Pod, func(name v1.ResourceName, requested int64) {
		resource, known := x.resources[name]
		limit, bounded := int64(0), false
		if known {
			limit, bounded = n.max.of(resource)
		}
		if found != nil || !bounded && !(a.UnlistedZero && n.Quota.Max != nil && isBasic(name)) {
			return
		}
		e := Excess{Queue: n, Resource: name, Used: at(n.used, resource), Requested: requested, Limit: limit}
		for _, w := range nominated {
			if w.pod.Priority >= a.Pod.Priority && w.within(n) {
				e.Nominated += amountOf(w.pod, name)
			}
		}
		if e.exceeded() {
			exceeded := e
			found = &exceeded
		}
	})
	return found
}

// overMins returns the first resource of which all queues together would use more than the
// sum of their mins. Nominated pods count if they are in the pod's queue and not less
// important, or in another one that is not over its min.
func (x *Index) overMins(a *Ask, q *Queue, nominated []waiting) (found *Excess) {
	each(a.Pod, func(name v1.ResourceName, requested int64) {
		if found != nil || !x.sharesMins(a, q, name) {
			return
		}
		e := Excess{Resource: name, Requested: requested}
		if resource, known := x.resources[name]; known {
			t := x.total[resource]
			e.Limit, e.Used = t.min, t.usedListed
			if a.UnlistedZero {
				e.Used = t.used
			}
		}
		for _, w := range nominated {
			counts := w.Queue == q && w.pod.Priority >= a.Pod.Priority || w.Queue != q && !w.overMin()
			if counts && x.sharesMins(a, w.Queue, name) {
				e.Nominated += amountOf(w.pod, name)
			}
		}
		if e.exceeded() {
			exceeded := e
			found = &exceeded
		}
	})
	return found
}

// sharesMins reports whether what the queue uses of the resource is bounded by the sum of
// the mins: the min of its uppermost ancestor lists the resource.
func (x *Index) sharesMins(a *Ask, q *Queue, name v1.ResourceName) bool {
	if a.UnlistedZero {
		return true
	}
	resource, known := x.resources[name]
	return known && q.top().min.lists(resource)
}

// exceeded reports whether the limit is exceeded.
func (e *Excess) exceeded() bool { return e.Used+e.Nominated+e.Requested > e.Limit }

// amountOf returns how much of the resource the pod uses once it is placed.
func amountOf(p *object.Pod, name v1.ResourceName) int64 {
	return min(max(p.Demand.Usage.Of(name), 0), mostCounted)
}

// isBasic reports whether the resource is one that a list always has in the plugin
// CapacityScheduling of sigs.k8s.io/scheduler-plugins.
func isBasic(name v1.ResourceName) bool {
	return name == v1.ResourceCPU || name == v1.ResourceMemory || name == v1.ResourceEphemeralStorage
}

package quota

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// Ask is the question whether a pod may be placed as far as quotas are concerned.
type Ask struct {
	Pod *object.Pod
	// Nominated are the pods that are nominated to nodes. The pod itself is ignored among them.
	Nominated Nominated
	// UnlistedZero sets what a min or max does not name to 0: for a min, which may be absent, any
	// resource, and for a max that is there, CPU, memory and ephemeral storage. Otherwise a min or
	// max does not bound a resource that it does not name.
	UnlistedZero bool
}

// Excess is why a pod may not be placed: a limit that it would exceed.
type Excess struct {
	// Queue is the one whose max would be exceeded, or whose ElasticQuota is Unreadable: that
	// of the pod or an ancestor. nil stands for the sum of all mins.
	Queue *Queue
	// Resource is "" if the ElasticQuota is Unreadable.
	Resource v1.ResourceName
	// Used is what is in use in the Queue, or in all queues, and Nominated what is kept for
	// nominated pods there; Requested is what the pod requests. All three may not exceed Limit.
	Used, Nominated, Requested, Limit int64
	// Unlisted is set if the max, or every min, does not name the resource, so that Limit is 0.
	Unlisted bool
}

// Exceeded returns the limit that the pod would exceed if it were placed now: first those of
// each queue, from its own up, then the sum of the mins. It is nil if there is none, or the
// pod has no queue. Only resources that the pod requests count.
func (x *Index) Exceeded(a *Ask) *Excess {
	q := x.Queue(a.Pod.Namespace)
	if q == nil {
		return nil
	}
	nominated := x.nominated.of(a.Nominated)
	for n := q; n != nil; n = n.parent {
		if n.Quota.Unreadable != "" {
			return &Excess{Queue: n}
		}
		if found := x.overMax(a, n, nominated); found != nil {
			return found
		}
	}
	return x.overMins(a, q, nominated)
}

// overMax returns the first resource of which the queue n, that of the pod or an ancestor,
// would use more than its max; nil if there is none. Nominated pods count if they are in n or a
// part of it, and not less important than the pod.
func (x *Index) overMax(a *Ask, n *Queue, nominated nominatedPods) (found *Excess) {
	each(a.Pod, func(name v1.ResourceName, requested int64) {
		e := Excess{Queue: n, Resource: name, Requested: requested, Unlisted: true}
		if number, known := x.resources[name]; known {
			limit, listed := n.max.amount(number)
			e.Used, e.Limit, e.Unlisted = n.used.at(number).amount(), limit, !listed
		}
		if found != nil || e.Unlisted && !(a.UnlistedZero && n.Quota.Max != nil && isBasic(name)) {
			return
		}
		e.Nominated = x.keptWithin(a, n, name, nominated)
		if e.exceeded() {
			exceeded := e
			found = &exceeded
		}
	})
	return found
}

// overMins returns the first resource of which the queues would use more than the sum of their
// mins; nil if there is none. Unless UnlistedZero is set, a queue counts only if the min of its
// uppermost ancestor lists the resource. Nominated pods in the pod's queue count if they are not
// less important; those in another queue count if that queue is not over its min.
func (x *Index) overMins(a *Ask, q *Queue, nominated nominatedPods) (found *Excess) {
	each(a.Pod, func(name v1.ResourceName, requested int64) {
		if found != nil || !x.sharesMins(a, q, name) {
			return
		}
		e := Excess{Resource: name, Requested: requested}
		number, known := x.resources[name]
		if known {
			t := &x.total[number]
			e.Limit, e.Used = t.min.amount(), t.usedListed.amount()
			if a.UnlistedZero {
				e.Used = t.used.amount()
			}
		}
		for namespace, in := range nominated { // any order: adds up
			switch other := x.queues[namespace]; {
			case other == nil || !x.sharesMins(a, other, name):
			case other == q:
				e.Nominated = resource.Add(e.Nominated, in.kept(a.Pod, name))
			case !other.overMin(a.UnlistedZero):
				e.Nominated = resource.Add(e.Nominated, in.total[name])
			}
		}
		if e.exceeded() {
			exceeded := e
			exceeded.Unlisted = !known || x.total[number].listed == 0
			found = &exceeded
		}
	})
	return found
}

// sharesMins reports whether the sum of the mins bounds what the queue uses of the resource: if
// the min of its uppermost ancestor lists the resource, and always if UnlistedZero is set.
func (x *Index) sharesMins(a *Ask, q *Queue, name v1.ResourceName) bool {
	if a.UnlistedZero {
		return true
	}
	number, known := x.resources[name]
	return known && q.top().min.lists(number)
}

// exceeded reports whether Used, Nominated and Requested together exceed Limit.
func (e *Excess) exceeded() bool {
	return resource.Add(resource.Add(e.Used, e.Nominated), e.Requested) > e.Limit
}

// amountOf returns how much of the resource the pod uses once it is placed.
func amountOf(p *object.Pod, name v1.ResourceName) int64 {
	return max(p.Demand.Usage.Of(name), 0)
}

// isBasic reports whether the resource is one that a list always has in the plugin
// CapacityScheduling of sigs.k8s.io/scheduler-plugins.
func isBasic(name v1.ResourceName) bool {
	return name == v1.ResourceCPU || name == v1.ResourceMemory || name == v1.ResourceEphemeralStorage
}

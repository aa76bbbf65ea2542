package quota

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// Reclaim decides which placed pods the pod of a question may preempt, called the pod here. It
// serves one search, during which the table is as it was or under a checkpoint. It does not change
// the table.
//
// A pod without a queue may preempt pods of lower priority that have none either; between pods with
// and without a queue there is no preemption. A pod may preempt those of its own queue of lower
// priority. If it is within what its queue is guaranteed, it may also preempt pods of other queues,
// whatever their priority, that use what it requests, as long as none of these queues falls below
// its min of that. Pods that are leaving count as gone from the queue that lends.
type Reclaim struct {
	index     *Index
	ask       *Ask
	evicting  func(types.UID) bool // a pod is leaving though it is not being deleted; nil: none is
	queue     *Queue               // of the pod; nil for none
	nominated nominatedPods
	entitled  map[*Queue]bool // what EntitledTo found
	leaving   map[*Queue]sums // what leavingFrom found
	taken     map[*Queue]sums // what the pods of other queues use that Allows let go
}

// Any reports whether there are queues.
func (x *Index) Any() bool {
	x.link()
	return len(x.queues) > 0
}

// Revision returns a number that grows whenever an ElasticQuota changed in more than its
// status.
func (x *Index) Revision() uint64 {
	x.link()
	return x.revision
}

// Reclaim returns a Reclaim for the pod of the question. evicting reports whether a pod is
// leaving though it is not being deleted yet; nil stands for none.
func (x *Index) Reclaim(a *Ask, evicting func(types.UID) bool) *Reclaim {
	return &Reclaim{index: x, ask: a, evicting: evicting, queue: x.Queue(a.Pod.Namespace), nominated: x.nominated.of(a.Nominated),
		entitled: map[*Queue]bool{}, leaving: map[*Queue]sums{}, taken: map[*Queue]sums{}}
}

// Queued reports whether the pod has a queue.
func (r *Reclaim) Queued() bool { return r.queue != nil }

// SharesQueue reports whether p and the pod have the same queue, or neither has one.
func (r *Reclaim) SharesQueue(p *object.Pod) bool { return r.index.queues[p.Namespace] == r.queue }

// Entitled reports whether the pod is within what its queue, or an ancestor of that, is
// guaranteed, so that others may have to give something back.
func (r *Reclaim) Entitled() bool {
	for q := r.queue; q != nil; q = q.parent {
		if r.EntitledTo(q) {
			return true
		}
	}
	return false
}

// EntitledTo reports whether the min of q, the pod's queue or an ancestor of that, covers what q
// uses, the pods nominated there that are not less important, and the pod, of each resource that
// the pod requests and min lists. Min must list one of these resources, with UnlistedZero all of
// them, and be readable.
func (r *Reclaim) EntitledTo(q *Queue) bool {
	if entitled, known := r.entitled[q]; known {
		return entitled
	}
	some, all := false, q.Quota.Unreadable == ""
	each(r.ask.Pod, func(name v1.ResourceName, requested int64) {
		number, known := r.index.resources[name]
		least, listed := int64(0), false
		if known {
			least, listed = q.min.amount(number)
		}
		if !listed {
			all = all && !r.ask.UnlistedZero
			return
		}
		needed := resource.Add(q.used.at(number).amount(), requested)
		needed = resource.Add(needed, r.index.keptWithin(r.ask, q, name, r.nominated))
		some, all = true, all && needed <= least
	})
	r.entitled[q] = some && all
	return some && all
}

// Allows reports whether the pod may preempt the victims, pods of one namespace that go together,
// at least one. If so it counts them as gone until Restart is called. priority is that by which
// they are preempted.
func (r *Reclaim) Allows(victims []*object.Pod, priority int32) bool {
	lender := r.index.queues[victims[0].Namespace]
	if lender == r.queue {
		return priority < r.ask.Pod.Priority
	}
	if lender == nil || r.queue == nil {
		return false
	}
	mine, its := apart(r.queue, lender)
	stays := r.staying(victims) // the others count as gone already
	if mine == nil || its == nil || !r.EntitledTo(mine) || !r.lends(Together(victims), stays, lender, mine) {
		return false
	}
	for q := lender; ; q = q.parent {
		taken := r.taken[q]
		each(stays, func(name v1.ResourceName, amount int64) {
			if number, known := r.index.resources[name]; known { // else no min lists it
				taken.add(number, wide(amount))
			}
		})
		if r.taken[q] = taken; q == its {
			return true
		}
	}
}

// apart returns the highest ancestor of a that does not contain b, and the highest ancestor of b
// that does not contain a. A queue counts as its own ancestor. ofA is nil if a contains b, ofB is
// nil if b contains a.
func apart(a, b *Queue) (ofA, ofB *Queue) {
	up := func(q, other *Queue) *Queue {
		var last *Queue
		for ; q != nil && !other.within(q); q = q.parent {
			last = q
		}
		return last
	}
	return up(a, b), up(b, a)
}

// lends reports whether the queue lender may give up the victims. They must use a resource that the
// pod requests and the min of mine lists. Of no such resource may lender, or an ancestor that does
// not contain the pod's queue, fall below its min. Other resources do not matter: the lender stays
// entitled to them. All these queues must be readable. stays is what those of the victims use that
// do not leave anyway.
func (r *Reclaim) lends(victims, stays *object.Pod, lender, mine *Queue) bool {
	useful, enough := false, true
	each(r.ask.Pod, func(name v1.ResourceName, _ int64) {
		number, known := r.index.resources[name]
		if !known || amountOf(victims, name) == 0 || !mine.min.lists(number) {
			return
		}
		useful = true
		amount := amountOf(stays, name)
		if amount == 0 {
			return
		}
		for q := lender; q != nil && !r.queue.within(q); q = q.parent {
			left := q.used.at(number).minus(r.leavingFrom(q).at(number)).minus(r.taken[q].at(number)).minus(wide(amount))
			if least, listed := q.min.amount(number); listed && left.amount() < least {
				enough = false
			}
		}
	})
	for q := lender; q != nil; q = q.parent {
		enough = enough && q.Quota.Unreadable == ""
	}
	return useful && enough
}

// staying returns a pod that uses what those of the victims use together that are not leaving.
func (r *Reclaim) staying(victims []*object.Pod) *object.Pod {
	if slices.ContainsFunc(victims, r.isLeaving) {
		victims = slices.DeleteFunc(slices.Clone(victims), r.isLeaving)
	}
	return Together(victims)
}

// isLeaving reports whether the pod is being deleted or evicted.
func (r *Reclaim) isLeaving(p *object.Pod) bool {
	return p.Terminating || r.evicting != nil && r.evicting(p.UID)
}

// leavingFrom returns what the leaving pods of the queue and its parts use. It looks at all
// pods of these, once for a Reclaim.
func (r *Reclaim) leavingFrom(q *Queue) sums {
	leaving, known := r.leaving[q]
	if known {
		return leaving
	}
	for _, part := range r.index.queues { // any order: adds up
		if !part.within(q) {
			continue
		}
		r.index.table.PodsByLabels(part.Quota.Namespace, func(same *table.PodsWithLabels) {
			for _, pl := range same.Pods() {
				if r.isLeaving(pl.Pod) {
					each(pl.Pod, func(name v1.ResourceName, amount int64) { leaving.add(r.index.resources[name], wide(amount)) })
				}
			}
		})
	}
	r.leaving[q] = leaving
	return leaving
}

// Restart forgets which pods were allowed: they count as there again.
func (r *Reclaim) Restart() { clear(r.taken) }

// Preemptible appends those of pods that the pod may preempt together. It calls Restart, and then
// decides on the least important first. pods are sorted, the most important first; so is what it
// appends.
func (r *Reclaim) Preemptible(to, pods []*object.Pod) []*object.Pod {
	r.Restart()
	from := len(to)
	for i, p := range slices.Backward(pods) {
		if r.Allows(pods[i:i+1], p.Priority) {
			to = append(to, p)
		}
	}
	slices.Reverse(to[from:])
	return to
}

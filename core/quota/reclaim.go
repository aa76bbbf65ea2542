package quota

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
)

// Reclaim decides, pod after pod, which placed pods another one may preempt. It counts those
// that were allowed as gone, and changes nothing.
//
// Pods without a queue may preempt such of lower priority, and nobody may preempt across. A
// pod may preempt those of its own queue of lower priority. If it is within what its queue
// is guaranteed, it may also preempt pods of other queues, whatever their priority, that
// use what it requests, as long as none of these queues falls below its min.
type Reclaim struct {
	index *Index
	ask   *Ask
	queue *Queue // of the pod; nil for none
	// nominated are the pods that are nominated in some queue, with the queue.
	nominated []waiting
	taken     map[*Queue][]int64 // what the pods that were allowed use, by queue and resource
}

// Any reports whether there are queues.
func (x *Index) Any() bool {
	x.link()
	return len(x.queues) > 0
}

// Reclaim returns a Reclaim for the pod of the question, in which no pod is gone.
func (x *Index) Reclaim(a *Ask) *Reclaim {
	return &Reclaim{index: x, ask: a, queue: x.Queue(a.Pod.Namespace), nominated: x.waiting(a), taken: map[*Queue][]int64{}}
}

// Entitled reports whether the pod requests something that its queue, or an ancestor of
// that, is guaranteed and does not use, so that others may have to give it back.
func (r *Reclaim) Entitled() bool {
	entitled := false
	for q := r.queue; q != nil; q = q.parent {
		each(r.ask.Pod, func(name v1.ResourceName, requested int64) {
			entitled = entitled || r.guaranteed(q, name, requested)
		})
	}
	return entitled
}

// allows reports whether the pod may preempt victim, and counts victim as gone if so.
func (r *Reclaim) allows(victim *object.Pod) bool {
	of := r.index.queues[victim.Namespace]
	if of == r.queue {
		return victim.Priority < r.ask.Pod.Priority
	}
	if of == nil || r.queue == nil {
		return false
	}
	mine, its := apart(r.queue, of)
	if mine == nil || its == nil || !r.lends(victim, of, mine) {
		return false
	}
	for q := of; ; q = q.parent {
		each(victim, func(name v1.ResourceName, amount int64) {
			taken := r.taken[q]
			add(&taken, r.index.number(name), amount)
			r.taken[q] = taken
		})
		if q == its {
			return true
		}
	}
}

// apart returns the uppermost queues that the two are parts of, or are, and that are not one
// queue. nil stands for a queue that the other is a part of.
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

// lends reports whether victim, of the queue of, uses something that the pod requests within
// the min of mine, and no queue that victim is a part of falls below its min without it.
func (r *Reclaim) lends(victim *object.Pod, of, mine *Queue) bool {
	useful := false
	each(r.ask.Pod, func(name v1.ResourceName, requested int64) {
		useful = useful || amountOf(victim, name) > 0 && r.guaranteed(mine, name, requested)
	})
	if !useful {
		return false
	}
	enough := true
	for q := of; q != nil && !r.queue.within(q); q = q.parent {
		each(victim, func(name v1.ResourceName, amount int64) {
			resource, known := r.index.resources[name]
			if least, listed := q.min.of(resource); known && listed && at(q.used, resource)-at(r.taken[q], resource)-amount < least {
				enough = false
			}
		})
	}
	return enough
}

// guaranteed reports whether the queue's min covers what it uses of the resource, the pods
// nominated there, and the request.
func (r *Reclaim) guaranteed(q *Queue, name v1.ResourceName, requested int64) bool {
	resource, known := r.index.resources[name]
	if !known {
		return false
	}
	least, listed := q.min.of(resource)
	for _, w := range r.nominated {
		if w.within(q) && w.pod.Priority >= r.ask.Pod.Priority {
			requested += amountOf(w.pod, name)
		}
	}
	return listed && at(q.used, resource)+requested <= least
}

// Preemptible appends those of the pods that the pod may preempt together, the least
// important decided on first. pods are sorted, the most important first; so is the result.
func (r *Reclaim) Preemptible(to, pods []*object.Pod) []*object.Pod {
	clear(r.taken)
	from := len(to)
	for _, p := range slices.Backward(pods) {
		if r.allows(p) {
			to = append(to, p)
		}
	}
	slices.Reverse(to[from:])
	return to
}

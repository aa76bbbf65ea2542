package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// link brings the queues up to date with the ElasticQuotas that changed. It touches the
// queues of these, and those whose parent is another then. It counts the pods of the
// namespaces that had no queue before, and of no others.
func (x *Index) link() {
	if len(x.stale) == 0 {
		return
	}
	x.revision++
	namespaces := slices.Sorted(maps.Keys(x.stale))
	clear(x.stale)
	var touched []*Queue // and not linked
	moved := false       // a queue may get another parent
	for _, namespace := range namespaces {
		q, remade := x.replace(namespace)
		if moved = moved || remade; q != nil {
			touched = append(touched, q)
		}
	}
	if moved {
		touched = x.linkParents(touched)
	}
	for _, q := range touched {
		x.attach(q)
	}
}

// replace takes over the ElasticQuota that counts in the namespace now. It returns the
// queue, which is not linked, nil if there is none any more. remade is set if it came, went,
// or has another name, parent or parts.
func (x *Index) replace(namespace string) (q *Queue, remade bool) {
	q = x.queues[namespace]
	if q != nil {
		x.detach(q)
	}
	if len(x.quotas[namespace]) == 0 {
		if q != nil {
			x.drop(q)
		}
		return nil, q != nil
	}
	now := x.quotas[namespace][0]
	if q == nil {
		q, remade = &Queue{index: x}, true
		x.countAll(q, namespace)
		x.queues[namespace] = q
	} else {
		remade = q.Quota.Name != now.Name || q.Quota.Parent != now.Parent || !slices.Equal(q.Quota.Parts, now.Parts)
		q.remade = q.remade || q.Quota.Unreadable != now.Unreadable
	}
	q.remade = q.remade || remade
	old := slices.Concat(q.min, q.max)
	q.Quota, q.min, q.max = now, x.limits(now.Min), x.limits(now.Max)
	x.dropLimits(old)
	return q, remade
}

// drop forgets a queue that is not linked, as its namespace has no ElasticQuota any more.
func (x *Index) drop(q *Queue) {
	delete(x.queues, q.Quota.Namespace)
	x.dropLimits(slices.Concat(q.min, q.max))
	for n, amount := range q.own {
		if amount != (sum{}) {
			x.holders[n]--
			x.release(n)
		}
	}
}

// dropLimits releases the resources of limits that do not count any more.
func (x *Index) dropLimits(l limits) {
	for _, limit := range l {
		x.holders[limit.resource]--
		x.release(limit.resource)
	}
}

// countAll adds what the placed pods of the namespace use to its queue, which is new.
func (x *Index) countAll(q *Queue, namespace string) {
	x.table.PodsByLabels(namespace, func(same *table.PodsWithLabels) {
		for _, pl := range same.Pods() {
			each(pl.Pod, func(name v1.ResourceName, amount int64) { x.charge(q, x.number(name), wide(amount)) })
		}
	})
}

// linkParents sets the parent and the fault of each queue. It detaches linked queues that get
// another parent. It returns all that are not linked: touched, and those that it detached.
func (x *Index) linkParents(touched []*Queue) []*Queue {
	var moved, parents []*Queue
	for _, q := range x.sorted() {
		parent, fault := x.parentOf(q.Quota)
		if q.fault = fault; q.parent != parent {
			moved, parents = append(moved, q), append(parents, parent)
		}
	}
	for _, q := range moved { // all of them before one has its new parent, as that may be a part of it now
		if q.linked {
			x.detach(q)
			touched = append(touched, q)
		}
	}
	for i, q := range moved {
		q.parent, q.remade = parents[i], true
	}
	return touched
}

// parentOf returns the queue of which that of the ElasticQuota is a part; nil for none. fault
// is why it is not the one that the ElasticQuota names. A queue that would be its own ancestor
// has none, and one with too many ancestors.
func (x *Index) parentOf(o *object.ElasticQuota) (parent *Queue, fault string) {
	if o.Parent == "" {
		return nil, ""
	}
	parent = x.byKey(o.Parent)
	cycle, deep := x.leadsTo(parent, x.queues[o.Namespace])
	switch {
	case parent == nil:
		return nil, fmt.Sprintf("its parent, ElasticQuota %s, does not exist or does not count; it has none", o.Parent)
	case !parent.Quota.Admits(o.Namespace):
		return nil, fmt.Sprintf("its parent, ElasticQuota %s, does not name the namespace %s in its annotation %s; it has none", o.Parent, o.Namespace, object.PartsAnnotation)
	case cycle:
		return nil, fmt.Sprintf("its parent, ElasticQuota %s, is a part of it; it has none", o.Parent)
	case deep:
		return nil, fmt.Sprintf("its parent, ElasticQuota %s, has %d others above it or more; it has none", o.Parent, mostAncestors)
	}
	return parent, ""
}

// byKey returns the queue of the ElasticQuota with that namespace and name; nil if there is
// none, or it does not count.
func (x *Index) byKey(key string) *Queue {
	namespace, _, _ := strings.Cut(key, "/")
	if q := x.queues[namespace]; q != nil && q.Quota.Key() == key {
		return q
	}
	return nil
}

// mostAncestors bounds the ancestors of a queue: each is written to whenever a pod of the
// queue comes or goes.
const mostAncestors = 16

// leadsTo reports whether the queue to is q or one above it. The way up goes from each queue to the
// parent that its ElasticQuota names, if that admits it. deep is set, and leads is false, if there
// are more than mostAncestors queues on the way, q included.
func (x *Index) leadsTo(q, to *Queue) (leads, deep bool) {
	passed := make([]*Queue, 0, mostAncestors)
	for q != nil && q != to && !slices.Contains(passed, q) { // a cycle of others ends here
		if len(passed) == mostAncestors {
			return false, true
		}
		passed = append(passed, q)
		part := q.Quota.Namespace
		if q = x.byKey(q.Quota.Parent); q != nil && !q.Quota.Admits(part) {
			q = nil
		}
	}
	return q == to, false
}

// attach adds the queue, which was not linked, with what it uses to its ancestors and the
// totals.
func (x *Index) attach(q *Queue) {
	q.linked = true
	x.include(q, 1)
}

// detach subtracts a linked queue with what it uses from its ancestors and the totals.
func (x *Index) detach(q *Queue) {
	x.include(q, -1)
	q.linked = false
}

// include adds what the queue uses to its ancestors and the totals, and its min to these if
// it has no parent, or subtracts them if sign is -1.
func (x *Index) include(q *Queue, sign int) {
	for n, amount := range q.used {
		if sign < 0 {
			amount = sum{}.minus(amount)
		}
		if amount != (sum{}) {
			x.passOn(q, n, amount)
		}
	}
	for p := q; p != nil; p = p.parent {
		x.markChanged(p)
	}
	if q.parent != nil {
		return
	}
	for _, l := range q.min {
		t := &x.total[l.resource]
		t.listed += sign
		if sign < 0 {
			t.min = t.min.minus(wide(l.amount))
		} else {
			t.min.add(wide(l.amount))
		}
	}
}

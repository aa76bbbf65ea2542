package quota

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Index keeps the queues of a table's ElasticQuotas. It is used by the table's owner. Its exported
// methods first bring the queues up to date with the ElasticQuotas that changed (link).
type Index struct {
	table  *table.Table
	queues map[string]*Queue                 // by namespace
	quotas map[string][]*object.ElasticQuota // by namespace, the oldest first
	stale  map[string]bool                   // namespaces whose ElasticQuotas changed since link was called
	// revision counts the calls of link that found a change.
	revision uint64

	resources map[v1.ResourceName]int // their numbers, by which amounts are kept
	names     []v1.ResourceName       // by number; "" for a number that is free
	// holders counts, by number, the mins and maxes that list the resource, and the queues whose
	// own pods use it.
	holders []int
	free    []int   // numbers without a name
	total   []total // of the queues without a parent, by resource

	changed   []*Queue    // queues with changed set
	nominated nominations // those that the last Ask named
}

// total sums one resource over the queues without a parent. usedListed leaves out the queues whose
// min does not list the resource.
type total struct {
	used, usedListed, min sum
	listed                int // number of queues whose min lists the resource
}

// index registers the Index, so that every table has one.
var index = table.Follow(func(t *table.Table) table.Follower[*Index] {
	x := &Index{table: t, queues: map[string]*Queue{}, quotas: map[string][]*object.ElasticQuota{}, stale: map[string]bool{}, resources: map[v1.ResourceName]int{}}
	return table.Follower[*Index]{
		Index: x, ObjectChanged: x.objectChanged, Check: x.check,
		Came: func(pl *table.Placed) { x.count(pl.Pod, 1) },
		Left: func(pl *table.Placed) { x.count(pl.Pod, -1) },
	}
})

// Of returns the table's index of queues.
func Of(t *table.Table) *Index { return index.Of(t) }

// Queue returns the queue of the pods in the namespace; nil if there is none.
func (x *Index) Queue(namespace string) *Queue {
	x.link()
	return x.queues[namespace]
}

// Queues returns all queues, sorted by namespace.
func (x *Index) Queues() []*Queue {
	x.link()
	return x.sorted()
}

// TakeChanged returns the queues whose use or ElasticQuota may have changed since the last
// call, in no particular order, and whom that may help. It clears the list of these queues. Both
// results are valid until the next change of the table.
func (x *Index) TakeChanged() ([]*Queue, Relief) {
	x.link()
	changed, relief := x.changed, Relief{index: x}
	x.changed = x.changed[:0]
	changed = slices.DeleteFunc(changed, x.isGone)
	for _, q := range changed {
		q.changed = false
		relief.add(q)
	}
	return changed, relief
}

// Faults returns what is wrong with the ElasticQuota, and what counts instead; nil for
// nothing.
func (x *Index) Faults(o *object.ElasticQuota) []string {
	x.link()
	faults := slices.Clone(o.Faults)
	switch q := x.queues[o.Namespace]; {
	case q != nil && q.Quota.Name != o.Name:
		faults = append(faults, fmt.Sprintf("ElasticQuota %s is older and counts for the namespace; this one does not", q.Quota.Key()))
	case q != nil && q.fault != "":
		faults = append(faults, q.fault)
	}
	return faults
}

// objectChanged records that an ElasticQuota changed from was to is, nil if it does not exist. Its
// namespace is stale then, unless only its status changed. Other kinds are ignored.
func (x *Index) objectChanged(was, is object.Object) {
	old, gone := was.(*object.ElasticQuota)
	now, came := is.(*object.ElasticQuota)
	if gone {
		x.forget(old)
	}
	if came {
		at, _ := slices.BinarySearchFunc(x.quotas[now.Namespace], now, byAge)
		x.quotas[now.Namespace] = slices.Insert(x.quotas[now.Namespace], at, now)
	}
	switch {
	case gone && came && old.Alike(now):
		if q := x.queues[now.Namespace]; q != nil && q.Quota == old {
			q.Quota = now
			x.markChanged(q)
		}
	case gone:
		x.stale[old.Namespace] = true
	case came:
		x.stale[now.Namespace] = true
	}
}

// forget removes an ElasticQuota from x.quotas: it is gone, or another state of it follows.
func (x *Index) forget(o *object.ElasticQuota) {
	left := slices.DeleteFunc(x.quotas[o.Namespace], func(other *object.ElasticQuota) bool { return other.Name == o.Name })
	if x.quotas[o.Namespace] = left; len(left) == 0 {
		delete(x.quotas, o.Namespace)
	}
}

// byAge compares ElasticQuotas of a namespace, the one that counts before others first.
func byAge(a, b *object.ElasticQuota) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
}

// count adds what the pod requests to what its queue and the queue's ancestors use, or subtracts it
// if sign is -1. It does nothing if the pod has no queue.
func (x *Index) count(p *object.Pod, sign int64) {
	if len(x.queues) == 0 {
		return
	}
	q := x.queues[p.Namespace]
	if q == nil {
		return
	}
	each(p, func(name v1.ResourceName, amount int64) { x.charge(q, x.number(name), wide(sign*amount)) })
	for ; q != nil; q = q.parent {
		x.markChanged(q)
	}
}

// charge adds the amount of the resource with that number to what the queue's own pods use, and
// what the queue, its ancestors and all queues together use.
func (x *Index) charge(q *Queue, resource int, amount sum) {
	x.hold(q, resource, amount)
	q.used.add(resource, amount)
	x.passOn(q, resource, amount)
	x.release(resource)
}

// hold adds the amount to what the pods of the queue's namespace use, and corrects holders. Call
// release once the number of the resource is not used any more.
func (x *Index) hold(q *Queue, resource int, amount sum) {
	before := q.own.at(resource) != sum{}
	q.own.add(resource, amount)
	switch after := q.own.at(resource) != (sum{}); {
	case after && !before:
		x.holders[resource]++
	case before && !after:
		x.holders[resource]--
	}
}

// passOn adds the amount to what the ancestors of the queue use, and all queues together.
// It ends at one that is not linked: that one passes on what it uses once it is.
func (x *Index) passOn(q *Queue, resource int, amount sum) {
	for ; q.linked && q.parent != nil; q = q.parent {
		q.parent.used.add(resource, amount)
	}
	if !q.linked {
		return
	}
	t := &x.total[resource]
	t.used.add(amount)
	if q.min.lists(resource) {
		t.usedListed.add(amount)
	}
}

// markChanged adds the queue to those that TakeChanged returns next. Where nobody calls that,
// as in a scheduler that does not lead, queues that are gone leave the list from time to time.
func (x *Index) markChanged(q *Queue) {
	if q.changed {
		return
	}
	if len(x.changed) > 2*len(x.queues) {
		x.changed = slices.DeleteFunc(x.changed, x.isGone)
	}
	q.changed = true
	x.changed = append(x.changed, q)
}

// isGone reports whether the queue's namespace has another one by now, or none.
func (x *Index) isGone(q *Queue) bool { return x.queues[q.Quota.Namespace] != q }

// each calls visit with each resource that the pod uses once it is placed, and the amount. It
// leaves out amounts that are not positive.
func each(p *object.Pod, visit func(name v1.ResourceName, amount int64)) {
	u := &p.Demand.Usage
	for _, a := range [...]object.Amount{{Name: v1.ResourceCPU, Value: u.MilliCPU}, {Name: v1.ResourceMemory, Value: u.Memory}, {Name: v1.ResourceEphemeralStorage, Value: u.EphemeralStorage}} {
		if a.Value > 0 {
			visit(a.Name, a.Value)
		}
	}
	for _, s := range u.Scalars {
		if s.Value > 0 {
			visit(s.Name, s.Value)
		}
	}
}

// number returns the number of the resource, a new one if it has none. Whoever asks for it
// holds it, or calls release.
func (x *Index) number(name v1.ResourceName) int {
	if n, known := x.resources[name]; known {
		return n
	}
	n := len(x.names)
	if last := len(x.free) - 1; last >= 0 {
		n, x.free = x.free[last], x.free[:last]
	} else {
		x.names, x.holders, x.total = append(x.names, ""), append(x.holders, 0), append(x.total, total{})
	}
	x.resources[name], x.names[n] = n, name
	return n
}

// release frees the number if no queue uses or limits the resource any more, so that there
// are only as many numbers as resources were in use at one time.
func (x *Index) release(number int) {
	if x.holders[number] == 0 {
		delete(x.resources, x.names[number])
		x.names[number], x.free = "", append(x.free, number)
	}
}

// sorted returns the queues, sorted by namespace.
func (x *Index) sorted() []*Queue {
	return slices.SortedFunc(maps.Values(x.queues), func(a, b *Queue) int { return cmp.Compare(a.Quota.Namespace, b.Quota.Namespace) })
}

// check returns an error for the first difference from the index of a fresh table.
func (x *Index) check(fresh *Index) error {
	got, want := x.texts(), fresh.texts()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			return fmt.Errorf("queues\n%q, rebuilt\n%q", got, want)
		}
	}
	return nil
}

// texts describes the queues and the totals, each as a line, for check.
func (x *Index) texts() []string {
	var lines []string
	for _, q := range x.Queues() {
		parent := ""
		if q.parent != nil {
			parent = q.parent.Quota.Key()
		}
		lines = append(lines, fmt.Sprintf("%s in %q: own %v, used %v, faults %q", q.Quota.Key(), parent, x.amounts(q.own), x.amounts(q.used), x.Faults(q.Quota)))
	}
	for _, name := range slices.Sorted(maps.Keys(x.resources)) {
		if t := x.total[x.resources[name]]; t != (total{}) {
			lines = append(lines, fmt.Sprintf("%s: %+v", name, t))
		}
	}
	return lines
}

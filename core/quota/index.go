package quota

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// Index keeps the queues of a table's ElasticQuotas. It is used by the table's owner.
type Index struct {
	table  *table.Table
	queues map[string]*Queue // by namespace
	stale  bool              // an ElasticQuota changed, and link was not called since
	// revision counts the calls of link that made queues anew.
	revision uint64

	resources map[v1.ResourceName]int // their numbers, by which amounts are kept
	names     []v1.ResourceName       // by number
	total     []total                 // of the queues without a parent, by resource

	faults  map[string]string // by key of the ElasticQuota; found by link
	changed []*Queue          // queues with changed set
}

// total sums one resource over the queues without a parent. Listed sums leave out the
// queues whose min does not list the resource.
type total struct {
	used, usedListed sum
	min              int64
}

// index registers the Index, so that every table has one.
var index = table.Follow(func(t *table.Table) table.Follower[*Index] {
	x := &Index{table: t, queues: map[string]*Queue{}, resources: map[v1.ResourceName]int{}}
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

// Faults returns what is wrong with the ElasticQuota, and what counts instead; nil for
// nothing.
func (x *Index) Faults(q *object.ElasticQuota) []string {
	x.link()
	faults := slices.Clone(q.Faults)
	if why := x.faults[q.Key()]; why != "" {
		faults = append(faults, why)
	}
	return faults
}

// TakeChanged returns the queues whose use or ElasticQuota may have changed since the last
// call, in no particular order. The slice is valid until the next change of the table.
func (x *Index) TakeChanged() []*Queue {
	x.link()
	changed := x.changed
	x.changed = x.changed[:0]
	for _, q := range changed {
		q.changed = false
	}
	return changed
}

// objectChanged marks the queues as stale if an ElasticQuota changed in more than its status.
func (x *Index) objectChanged(was, is object.Object) {
	old, gone := was.(*object.ElasticQuota)
	now, came := is.(*object.ElasticQuota)
	if gone && came && old.Alike(now) {
		if q := x.queues[now.Namespace]; q != nil && q.Quota == old {
			q.Quota = now
			x.markChanged(q)
		}
		return
	}
	x.stale = x.stale || gone || came
}

// count adds what the pod requests to its queue and the parents of that, or subtracts it if
// sign is -1.
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

// charge adds the amount of a resource to what the queue and its parents use.
func (x *Index) charge(q *Queue, resource int, amount sum) {
	q.own.add(resource, amount)
	for {
		q.used.add(resource, amount)
		if q.parent == nil {
			break
		}
		q = q.parent
	}
	t := &x.total[resource]
	t.used.add(amount)
	if q.min.lists(resource) {
		t.usedListed.add(amount)
	}
}

// markChanged adds the queue to those that TakeChanged returns next.
func (x *Index) markChanged(q *Queue) {
	if !q.changed {
		q.changed = true
		x.changed = append(x.changed, q)
	}
}

// each calls visit with each resource that the pod uses once it is placed, and the amount.
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

// number returns the number of the resource, a new one if it has none. Pods that have a
// node and ElasticQuotas name few resources.
func (x *Index) number(name v1.ResourceName) int {
	n, known := x.resources[name]
	if !known {
		n = len(x.names)
		x.resources[name], x.names, x.total = n, append(x.names, name), append(x.total, total{})
	}
	return n
}

// link makes the queues anew from the ElasticQuotas, if these changed. It counts the pods
// of the namespaces that had no queue before, and of no others.
func (x *Index) link() {
	if !x.stale {
		return
	}
	x.stale = false
	x.revision++
	before := x.queues
	x.queues, x.faults, x.changed = map[string]*Queue{}, map[string]string{}, x.changed[:0]
	for _, o := range x.oldestFirst() {
		if first := x.queues[o.Namespace]; first != nil {
			x.faults[o.Key()] = fmt.Sprintf("ElasticQuota %s is older and counts for the namespace; this one does not", first.Quota.Key())
			continue
		}
		q := &Queue{Quota: o, index: x, min: x.limits(o.Min), max: x.limits(o.Max)}
		if old := before[o.Namespace]; old != nil {
			q.own = old.own
		} else {
			x.countAll(q)
		}
		x.queues[o.Namespace] = q
		x.markChanged(q)
	}
	x.linkParents()
	x.sum()
}

// oldestFirst returns all ElasticQuotas, sorted by age, then namespace and name.
func (x *Index) oldestFirst() []*object.ElasticQuota {
	var list []*object.ElasticQuota
	for _, o := range x.table.Objects().List(object.ElasticQuotas) {
		list = append(list, o.(*object.ElasticQuota))
	}
	slices.SortStableFunc(list, func(a, b *object.ElasticQuota) int { return a.Created.Compare(b.Created) })
	return list
}

// countAll adds what the placed pods of the queue's namespace use.
func (x *Index) countAll(q *Queue) {
	x.table.PodsByLabels(q.Quota.Namespace, func(same *table.PodsWithLabels) {
		for _, pl := range same.Pods() {
			each(pl.Pod, func(name v1.ResourceName, amount int64) { q.own.add(x.number(name), wide(amount)) })
		}
	})
}

// linkParents sets each queue's parent. A queue that would be its own ancestor gets none.
func (x *Index) linkParents() {
	for _, q := range x.sorted() {
		if q.Quota.Parent == "" {
			continue
		}
		parent := x.byKey(q.Quota.Parent)
		switch {
		case parent == nil:
			x.faults[q.Quota.Key()] = fmt.Sprintf("its parent, ElasticQuota %s, does not exist or does not count; it has none", q.Quota.Parent)
		case x.leadsTo(parent, q):
			x.faults[q.Quota.Key()] = fmt.Sprintf("its parent, ElasticQuota %s, is a part of it; it has none", q.Quota.Parent)
		default:
			q.parent = parent
		}
	}
}

// sorted returns the queues, sorted by namespace.
func (x *Index) sorted() []*Queue {
	return slices.SortedFunc(maps.Values(x.queues), func(a, b *Queue) int { return cmp.Compare(a.Quota.Namespace, b.Quota.Namespace) })
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

// leadsTo reports whether the ElasticQuotas that the queue names as its parent, the parent
// of that and so on come to the queue to.
func (x *Index) leadsTo(q, to *Queue) bool {
	for range len(x.queues) { // a cycle of others ends here
		if q == nil || q == to {
			break
		}
		q = x.byKey(q.Quota.Parent)
	}
	return q == to
}

// sum computes what the queues use with their parts, and the totals.
func (x *Index) sum() {
	clear(x.total)
	for _, q := range x.queues { // any order: adds up
		own := q.own
		q.own = nil
		for n, amount := range own {
			x.charge(q, n, amount)
		}
		if q.parent == nil {
			for _, l := range q.min {
				t := &x.total[l.resource]
				t.min = resource.Add(t.min, l.amount)
			}
		}
	}
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

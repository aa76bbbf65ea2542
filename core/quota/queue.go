package quota

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// Queue is an ElasticQuota with what its pods use. It is valid until an ElasticQuota of the
// table changes.
type Queue struct {
	Quota  *object.ElasticQuota
	index  *Index
	parent *Queue // nil for none
	linked bool   // what it uses counts for its parent and the totals
	fault  string // why it does not have the parent that Quota names; "" if it has

	own      sums   // what the pods of the namespace use
	used     sums   // what they and the pods of the queue's parts use
	min, max limits // those of Quota
	changed  bool   // TakeChanged is to return it

	spared object.Amounts // what spare returned when TakeChanged was called last
	remade bool           // since then it came, or changed in more than its amounts
}

// limits are the amounts of a min or max, sorted by resource.
type limits []limit

// limit is an amount of the resource with that number.
type limit struct {
	resource int
	amount   int64
}

// limits returns the amounts of a list, with the numbers of the resources, which it holds.
func (x *Index) limits(list object.Amounts) limits {
	var l limits
	for _, a := range list {
		n := x.number(a.Name)
		x.holders[n]++
		l = append(l, limit{n, a.Value})
	}
	slices.SortFunc(l, func(a, b limit) int { return cmp.Compare(a.resource, b.resource) })
	return l
}

// amount returns the amount of the resource; false if the list does not name it.
func (l limits) amount(resource int) (int64, bool) {
	i, listed := slices.BinarySearchFunc(l, resource, func(l limit, n int) int { return cmp.Compare(l.resource, n) })
	if !listed {
		return 0, false
	}
	return l[i].amount, true
}

// lists reports whether the list names the resource.
func (l limits) lists(resource int) bool {
	_, listed := l.amount(resource)
	return listed
}

// Parent returns the queue that this one is a part of; nil for none.
func (q *Queue) Parent() *Queue { return q.parent }

// Used returns what the queue and its parts use of the resources that its min or max list,
// sorted by name, as the status of the ElasticQuota shows it.
func (q *Queue) Used() object.Amounts {
	var used object.Amounts
	for _, l := range slices.Concat(q.min, q.max) {
		used = append(used, object.Amount{Name: q.index.names[l.resource], Value: q.used.at(l.resource).amount()})
	}
	slices.SortFunc(used, byName)
	return slices.Compact(used) // what both list is there twice
}

// amounts returns the amounts that are not 0, sorted by name.
func (x *Index) amounts(by sums) (list object.Amounts) {
	for resource, n := range by {
		if n != (sum{}) {
			list = append(list, object.Amount{Name: x.names[resource], Value: n.amount()})
		}
	}
	slices.SortFunc(list, byName)
	return list
}

// byName compares amounts by the name of the resource.
func byName(a, b object.Amount) int { return cmp.Compare(a.Name, b.Name) }

// within reports whether the queue is r itself or a part of it, at any depth.
func (q *Queue) within(r *Queue) bool {
	for ; q != nil; q = q.parent {
		if q == r {
			return true
		}
	}
	return false
}

// top returns the ancestor of the queue that has no parent, the queue itself if it has
// none.
func (q *Queue) top() *Queue {
	for q.parent != nil {
		q = q.parent
	}
	return q
}

// overMin reports whether the queue uses more of some resource than its min. A resource
// that min does not list has a min of 0 if unlistedZero is set; else it does not matter.
func (q *Queue) overMin(unlistedZero bool) bool {
	if slices.ContainsFunc(q.min, func(l limit) bool { return q.used.at(l.resource).amount() > l.amount }) {
		return true
	}
	for resource, used := range q.used {
		if unlistedZero && used.amount() > 0 && !q.min.lists(resource) {
			return true
		}
	}
	return false
}

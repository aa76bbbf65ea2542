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

	own      []int64 // what the pods of the namespace use, by resource
	used     []int64 // the same with the parts of the queue
	min, max limits
	changed  bool // TakeChanged is to return it
}

// limits are the amounts of a min or max, sorted by resource.
type limits []limit

// limit is an amount of the resource with that number.
type limit struct {
	resource int
	amount   int64
}

// limits returns the amounts of a list, with the numbers of the resources.
func (x *Index) limits(list object.Amounts) limits {
	var l limits
	for _, a := range list {
		l = append(l, limit{x.number(a.Name), min(a.Value, mostCounted)})
	}
	slices.SortFunc(l, func(a, b limit) int { return cmp.Compare(a.resource, b.resource) })
	return l
}

// of returns the amount of the resource; false if the list does not name it.
func (l limits) of(resource int) (int64, bool) {
	i, listed := slices.BinarySearchFunc(l, resource, func(l limit, n int) int { return cmp.Compare(l.resource, n) })
	if !listed {
		return 0, false
	}
	return l[i].amount, true
}

// lists reports whether the list names the resource.
func (l limits) lists(resource int) bool {
	_, listed := l.of(resource)
	return listed
}

// Parent returns the queue that this one is a part of; nil for none.
func (q *Queue) Parent() *Queue { return q.parent }

// Used returns what the queue and its parts use of the resources that its min or max list,
// sorted by name, as the status of the ElasticQuota shows it.
func (q *Queue) Used() object.Amounts {
	var used object.Amounts
	for _, l := range slices.Concat(q.min, q.max) {
		if name := q.index.names[l.resource]; !slices.ContainsFunc(used, func(a object.Amount) bool { return a.Name == name }) {
			used = append(used, object.Amount{Name: name, Value: at(q.used, l.resource)})
		}
	}
	slices.SortFunc(used, byName)
	return used
}

// amounts returns the amounts that are not 0, sorted by name.
func (x *Index) amounts(by []int64) (list object.Amounts) {
	for resource, n := range by {
		if n != 0 {
			list = append(list, object.Amount{Name: x.names[resource], Value: n})
		}
	}
	slices.SortFunc(list, byName)
	return list
}

// byName compares amounts by the name of the resource.
func byName(a, b object.Amount) int { return cmp.Compare(a.Name, b.Name) }

// add adds n to the amount of the resource.
func add(amounts *[]int64, resource int, n int64) {
	if short := resource + 1 - len(*amounts); short > 0 {
		*amounts = append(*amounts, make([]int64, short)...)
	}
	(*amounts)[resource] += n
}

// at returns the amount of the resource, 0 if there is none.
func at(amounts []int64, resource int) int64 {
	if resource < len(amounts) {
		return amounts[resource]
	}
	return 0
}

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
// that min does not list has a min of 0.
func (q *Queue) overMin() bool {
	for resource, used := range q.used {
		if guaranteed, _ := q.min.of(resource); used > guaranteed {
			return true
		}
	}
	return false
}

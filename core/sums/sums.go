// Package sums holds one rule: what a pod requests of an amount is at most what a node has
// of it, less what the node's pods use. A Sum is that rule for one amount, as data. Filter,
// preemption, wake-ups and explanations read it. A pod of 500 millicores does not fit on a
// node of 2,000 where pods use 1,600 (Short), and would if those left; a pod of 2,500 never
// fits there.
package sums

import (
	"math"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// Answer says whether a request fits on a node, and if not whether it could once other
// pods leave.
type Answer uint8

const (
	Fits  Answer = iota
	Short        // not while other pods use so much
	Never        // the node has less, whatever pods use
)

// Compare applies the rule to one node: has is its allocatable amount, used what its pods
// request. request is positive, used is not negative.
func Compare(request, has, used int64) Answer {
	switch {
	case request > has:
		return Never
	case request > has-used: // has is positive: no overflow
		return Short
	}
	return Fits
}

// Sum is what a pod requests of one resource, to be compared with what nodes have of it.
type Sum struct {
	// Name is the resource; v1.ResourcePods stands for the number of pods.
	Name    v1.ResourceName
	Request int64 // positive
	// Delegated is set if a device class stands for the resource: nodes that have none of
	// it themselves pass.
	Delegated bool

	column table.Resource
	known  bool // the column existed when the sum was made
}

// New returns the sum for a positive request of the resource. delegated is set if a device
// class provides it on nodes without it.
func New(t *table.Table, name v1.ResourceName, request int64, delegated bool) Sum {
	s := Sum{Name: name, Request: request, Delegated: delegated}
	s.column, s.known = t.Column(name)
	return s
}

// columns returns the table's columns of what each node has and what its pods use, by row. known is
// false if no node has any and no pod uses any. A column that was added after the sum was made is
// found, too.
func (s *Sum) columns(t *table.Table) (has, used []int64, known bool) {
	if s.Name == v1.ResourcePods {
		return t.AllowedPods(), t.PodCount(), true
	}
	id := s.column
	if !s.known {
		if id, known = t.Column(s.Name); !known {
			return nil, nil, false
		}
	}
	return t.Allocatable(id), t.Used(id), true
}

// On returns how the request compares with what the row has and its pods use now.
func (s *Sum) On(t *table.Table, row table.Row) Answer {
	has, used := int64(0), int64(0)
	if allHave, allUse, known := s.columns(t); known {
		has, used = allHave[row], allUse[row]
	}
	if s.Delegated && has <= 0 {
		return Fits
	}
	return Compare(s.Request, has, used)
}

// eachUnfit calls visit for each row on which the request does not fit now, with the row's index in
// rows and how the request compares (Short or Never).
func (s *Sum) eachUnfit(t *table.Table, rows []table.Row, visit func(i int, a Answer)) {
	has, used, known := s.columns(t)
	if !known {
		for i, r := range rows {
			if a := s.On(t, r); a != Fits {
				visit(i, a)
			}
		}
		return
	}
	for i, r := range rows {
		if a := Compare(s.Request, has[r], used[r]); a != Fits && (!s.Delegated || has[r] > 0) {
			visit(i, a)
		}
	}
}

// exchanged returns what On would return if the pods of a priority lower than below left
// the row and the pods in came were added. known is false if a sum is saturated, or if the
// table has no columns of the resource.
func (s *Sum) exchanged(t *table.Table, row table.Row, below int32, came []*object.Pod) (a Answer, known bool) {
	has, used, known := s.with(t, row, came)
	switch {
	case !known:
		return Fits, false
	case s.Delegated && has <= 0:
		return Fits, true
	}
	if a = Compare(s.Request, has, used); a == Short {
		a = Compare(s.Request, has, used-s.usedByLower(t, row, below))
	}
	return a, true
}

// Most returns the largest request that would fit if the pods of a priority lower than
// below left the row and the pods in came were added. It is at least 0, as a request of 0
// is not compared, and math.MaxInt64 if it is unknown.
func (s *Sum) Most(t *table.Table, row table.Row, below int32, came []*object.Pod) int64 {
	has, used, known := s.with(t, row, came)
	if !known {
		return math.MaxInt64
	}
	return max(0, resource.Add(has-used, s.usedByLower(t, row, below)))
}

// Repeats returns how many pods like p fit on the row beside each other once the pods in came were
// added; most if there are more. Each of them requests what the list says, and uses what p uses. If
// known is false it may be fewer than n: a sum is saturated, or the table has no columns of a
// resource that a device class stands for.
func Repeats(list []Sum, t *table.Table, row table.Row, came []*object.Pod, p *object.Pod, most int) (n int, known bool) {
	n, known = most, true
	for k := range list {
		s := &list[k]
		has, used, sure := s.with(t, row, came)
		switch {
		case s.On(t, row) != Fits:
			return 0, true
		case !sure:
			known = false
			continue
		case s.Delegated && has <= 0:
			continue
		case Compare(s.Request, has, used) != Fits:
			return 0, true
		}
		if use := s.UsedBy(p); use > 0 {
			n = int(min(int64(n), 1+(has-used-s.Request)/use))
		}
	}
	return n, known
}

// with returns what the row has, and what its pods and those in came use together. known is
// false if that is saturated, or if the table has no columns of the resource.
func (s *Sum) with(t *table.Table, row table.Row, came []*object.Pod) (has, used int64, known bool) {
	allHave, allUse, known := s.columns(t)
	if !known {
		return 0, 0, false
	}
	has, used = allHave[row], allUse[row]
	for _, p := range came {
		used = resource.Add(used, s.UsedBy(p))
	}
	return has, used, used != math.MaxInt64 && used != math.MinInt64
}

// Free returns how much of the resource the row's node has, and how much of that its pods
// leave free, which is negative on an overcommitted node. Both are 0 if no node has any and
// no pod uses any. v1.ResourcePods stands for the number of pods.
func Free(t *table.Table, name v1.ResourceName, row table.Row) (has, free int64) {
	s := New(t, name, 0, false)
	allHave, allUse, known := s.columns(t)
	if !known {
		return 0, 0
	}
	return allHave[row], resource.Sub(allHave[row], allUse[row])
}

// FreeOnAll returns how much of the resource is free on all nodes together. An overcommitted
// node has none to spare. v1.ResourcePods stands for the number of pods.
func FreeOnAll(t *table.Table, name v1.ResourceName) (sum int64) {
	s := New(t, name, 0, false)
	has, used, _ := s.columns(t)
	for r := range has {
		sum = resource.Add(sum, max(0, resource.Sub(has[r], used[r])))
	}
	return sum
}

// Lacking returns by how much the request exceeds what is free on the row; 0 or less if it
// fits. It is math.MinInt64 where the node has none: what device classes provide there is
// neither used nor freed by pods.
func (s *Sum) Lacking(t *table.Table, row table.Row) int64 {
	has, free := Free(t, s.Name, row)
	if has <= 0 && s.Name != v1.ResourcePods {
		return math.MinInt64
	}
	return resource.Sub(s.Request, free)
}

// UsedBy returns how much of the sum's resource the pod p uses on its node, and so frees
// when it is evicted; 1 for the number of pods.
func (s *Sum) UsedBy(p *object.Pod) int64 {
	if s.Name == v1.ResourcePods {
		return 1
	}
	return p.Demand.Usage.Of(s.Name)
}

// usedByLower returns how much the row's pods of a priority lower than below use.
func (s *Sum) usedByLower(t *table.Table, row table.Row, below int32) (sum int64) {
	pods, summaries := t.Pods(row), t.Summaries(row)
	for i := range summaries {
		p := &summaries[i]
		switch {
		case p.Priority >= below:
		case s.Name == v1.ResourceCPU:
			sum = resource.Add(sum, p.MilliCPU)
		case s.Name == v1.ResourceMemory:
			sum = resource.Add(sum, p.Memory)
		default:
			sum = resource.Add(sum, s.UsedBy(pods[i].Pod))
		}
	}
	return sum
}

package engine

import (
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// Capacity returns how many pods equal to the one decided on fit on the feasible rows beside each
// other, or most if there are more. Pods are equal if object.Pod.AppendTemplate appends the same
// for both. known is false if only placing them can tell, or the pod was rejected as a whole.
// Nothing is placed.
func (o *Outcome) Capacity(most int) (n int, known bool) {
	x := &o.work.feasibility
	switch {
	case o.Rejected != nil || !x.countable():
		return 0, false
	case o.Feasible >= most: // each takes one
		return most, true
	case !x.nominated.tried: // the pod is where it was nominated to
		x.tryNominated()
	}
	for _, r := range x.feasibleRows() {
		more, known := x.takes(r, most)
		if !known {
			return 0, false
		}
		if n = min(most, n+more); n == most {
			break
		}
	}
	return n, true
}

// Fill changes the outcome to that of one more equal pod after as many as Capacity returned, which
// must be less than most, are on the feasible rows: the pod fits on no row. The pods that a row
// takes count like pods that are nominated to it. Only the Choice, Tallies and RejectedBy may be
// read then. Fill returns false, and changes nothing, if only placing the pods can tell.
func (o *Outcome) Fill(most int) bool {
	x := &o.work.feasibility
	blocked := maps.Clone(x.nominated.blocked) // which the view may keep
	for _, r := range x.feasibleRows() {
		n, _ := x.takes(r, most)
		came := append(slices.Clip(x.countedOn(r, x.nominated.Nominator)), slices.Repeat([]*object.Pod{x.pod}, n)...)
		c, known := x.causeExchanged(r, framework.Nobody, came)
		if !known || !c.Rejects() {
			return false
		}
		if blocked == nil {
			blocked = map[table.Row]ranking.Cause{}
		}
		blocked[r] = c
	}
	x.nominated.blocked, x.rows, x.listed = blocked, nil, true
	o.work.Choice = Choice{Row: -1}
	o.Choice, o.tallies = o.work.Choice, nil
	o.tallies = o.tally() // while the nominations are as now
	return true
}

// countable reports whether the number of equal pods that fit on a row follows from the filters'
// verdicts on one. Each filter must compare resource sums, compare pods or read the node alone, and
// its plugin must have no Reserve. It is false with extenders, with hosted or cell filters, with
// filters that can fail, if PreScore failed, and if the verdict on the pod as a whole depends on
// other pods.
func (x *feasibility) countable() bool {
	v := x.view
	return !x.engine.plain && x.extenders == nil && v.failed == nil && v.local() && !x.depends() &&
		!slices.ContainsFunc(v.filters, func(f filter) bool {
			return f.Reserve != nil || f.Locality != framework.NodeOnly && f.in.Sums == nil && f.in.Conflicts == nil
		})
}

// takes returns how many pods equal to the one at hand the feasible row takes, at most most, with
// the nominated pods counted. If known is false it may be fewer.
func (x *feasibility) takes(r table.Row, most int) (n int, known bool) {
	return x.repeats(r, x.countedOn(r, x.nominated.Nominator), most)
}

// repeats returns how many pods equal to the one at hand fit on the row beside each other, at most
// most, once the pods in came were added. It asks only filters that compare sums or pods. If known
// is false it may be fewer than n.
func (x *feasibility) repeats(r table.Row, came []*object.Pod, most int) (n int, known bool) {
	n, known = most, true
	for k := range x.view.filters {
		in := &x.view.filters[k].in
		if in.Conflicts != nil && in.Conflicts(x.pod) {
			n = min(n, 1)
		}
		var sure bool
		n, sure = sums.Repeats(in.Sums, x.engine.table, r, came, x.pod, n)
		known = known && sure
	}
	return n, known
}

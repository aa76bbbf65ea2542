package engine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// feasibility finds, in one decision, which rows are feasible for a pod, and which filter
// rejects each of the others first.
type feasibility struct {
	*buffers
	engine    *Engine
	view      *view
	pod       *object.Pod      // the pod to be placed
	pre       preFiltered      // results of PreFilter, hosted plugins included
	nominated nominatedRows    // the nominations, and the verdicts that they change
	placement []table.Row      // the rows of the pod group's placement; nil: all
	narrowed  []table.Row      // the only rows considered, ascending; nil: all
	extenders *extenderResults // what extenders answered; nil: there are none

	hostedVerdicts hostedVerdicts // verdicts of hosted filters so far
	// cellVerdicts holds the verdict of each cell filter on each of askedCells; nil means
	// not asked so far.
	cellVerdicts [][]framework.Verdict
	askedCells   []table.Row // rows for which cellVerdicts is set
	rows         []table.Row // the feasible rows, ascending, if listed
	listed       bool        // feasibleRows was called
}

// countFeasible returns the number of feasible nodes, in the cheapest way that the decision allows.
// Hosted filters are asked if there are some. If rows can be chosen by buckets, it sets Fits of each
// bucket.
func (x *feasibility) countFeasible() int {
	if x.decidedByBuckets() {
		return x.filterBuckets()
	}
	if x.narrowed == nil && x.extenders == nil && len(x.view.cellFilters)+len(x.view.hostedFilters) == 0 {
		return x.view.index.Feasible - len(x.nominated.blocked)
	}
	return len(x.feasibleRows())
}

// decidedByBuckets reports whether each bucket of rows is feasible as a whole or not at all.
// That is false if hosted filters, nominated pods, extenders or a narrowing rule out single
// rows.
func (x *feasibility) decidedByBuckets() bool {
	return x.hasBuckets() && len(x.view.hostedFilters) == 0
}

// hasBuckets reports whether rows can be chosen by buckets if hosted filters are left out of
// account: the index has buckets, cells included, and no nominated pod, extender or
// narrowing rules out single rows.
func (x *feasibility) hasBuckets() bool {
	return x.view.index.Bucketed && x.view.bucketed() && x.nominated.blocked == nil && x.narrowed == nil && x.extenders == nil
}

// filterBuckets sets Fits of each bucket of the index: it has rows and all cell filters
// accept its cells. It returns the number of rows in buckets that fit.
func (x *feasibility) filterBuckets() int {
	v, rows := x.view, 0
	buckets := v.index.Buckets()
	for i := range buckets {
		bucket := &buckets[i]
		bucket.Fits = bucket.Rows > 0
		for _, f := range v.cellFilters {
			bucket.Fits = bucket.Fits && f.CellFilter.Filter(&f.in, bucket.Value(f.column.at)) == framework.Fits
		}
		if bucket.Fits {
			rows += bucket.Rows
		}
	}
	return rows
}

// fits reports whether the row is feasible: it passes all filters, hosted ones and
// nominations included, and the extenders.
func (x *feasibility) fits(r table.Row) bool {
	return x.passesFilters(r) && (x.extenders == nil || x.extenders.passes(r))
}

// passesFilters reports whether the row passes all filters, with nominated pods counted.
// Extenders are ignored.
func (x *feasibility) passesFilters(r table.Row) bool {
	if len(x.view.cellFilters)+len(x.view.hostedFilters) > 0 {
		return x.causeAt(r).Filter == ranking.Feasible
	}
	return x.view.index.IsFeasible(r) && !x.nominated.blocks(r)
}

// candidates returns the number of rows that the decision considers: those that the pod is
// narrowed to, else all of the table, with and without a node.
func (x *feasibility) candidates() int {
	if x.narrowed != nil {
		return len(x.narrowed)
	}
	return x.engine.table.Rows()
}

// candidate returns the i-th row that the decision considers, from 0.
func (x *feasibility) candidate(i int) table.Row {
	if x.narrowed != nil {
		return x.narrowed[i]
	}
	return table.Row(i)
}

// isCandidate reports whether the decision considers the row at all.
func (x *feasibility) isCandidate(r table.Row) bool {
	return x.narrowed == nil || contains(x.narrowed, r)
}

// feasibleRows returns the feasible rows, ascending. They are found at the first call in a
// decision; the slice is valid until the next decision.
func (x *feasibility) feasibleRows() []table.Row {
	if x.listed {
		return x.rows
	}
	list := x.buffers.feasible[:0]
	if x.narrowed == nil && x.extenders == nil && len(x.view.hostedFilters) == 0 {
		list = x.view.index.AppendFeasible(list)
		if x.nominated.blocked != nil {
			list = slices.DeleteFunc(list, x.nominated.blocks)
		}
		for _, f := range x.view.cellFilters {
			list = x.inCellsThatFit(list, f)
		}
	} else {
		for i, n := 0, x.candidates(); i < n; i++ {
			if r := x.candidate(i); x.fits(r) {
				list = append(list, r)
			}
		}
	}
	x.rows, x.listed, x.buffers.feasible = list, true, list
	return list
}

package engine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// feasibility finds which rows are feasible for a pod in one decision, and which filter
// rejects each of the others first.
type feasibility struct {
	*buffers
	engine    *Engine
	view      *view
	pod       *object.Pod
	pre       preFiltered
	nominated nominatedRows
	placement []table.Row      // the rows of the pod group's placement; nil: all
	narrowed  []table.Row      // the only rows considered; nil: all
	extenders *extenderResults // what extenders say; nil: nothing

	hostedVerdicts hostedVerdicts
	// cellVerdicts holds the verdict of each cell filter on each of askedCells; nil means
	// not asked so far.
	cellVerdicts [][]framework.Verdict
	askedCells   []table.Row
	rows         []table.Row // the feasible ones, once listed
	listed       bool
}

// countFeasible returns the number of feasible nodes.
func (x *feasibility) countFeasible() int {
	if x.decidedByGroups() {
		return x.filterGroups()
	}
	if x.narrowed == nil && x.extenders == nil && len(x.view.cellFilters)+len(x.view.hostedFilters) == 0 {
		return x.view.index.Feasible - len(x.nominated.blocked)
	}
	return len(x.feasibleRows())
}

// decidedByGroups reports whether groups of rows are feasible or not as a whole. They are
// not if anything besides the view's filters rules out single rows.
func (x *feasibility) decidedByGroups() bool {
	return x.groupable() && len(x.view.hostedFilters) == 0
}

// groupable reports whether native plugins, nominations and extenders allow a choice by
// groups of rows.
func (x *feasibility) groupable() bool {
	return x.view.index.Grouped && x.view.grouped() && x.nominated.blocked == nil && x.narrowed == nil && x.extenders == nil
}

// filterGroups asks the filters by cells about each group, and returns the number
// of feasible rows.
func (x *feasibility) filterGroups() int {
	v, rows := x.view, 0
	groups := v.index.Groups()
	for i := range groups {
		g := &groups[i]
		g.Fits = g.Rows > 0
		for _, f := range v.cellFilters {
			g.Fits = g.Fits && f.CellFilter.Filter(&f.in, g.Value(f.column.at)) == framework.Fits
		}
		if g.Fits {
			rows += g.Rows
		}
	}
	return rows
}

// fits reports whether the row is feasible: it passes all filters and extenders.
func (x *feasibility) fits(r table.Row) bool {
	return x.passesFilters(r) && (x.extenders == nil || x.extenders.passes(r))
}

func (x *feasibility) passesFilters(r table.Row) bool {
	if len(x.view.cellFilters)+len(x.view.hostedFilters) > 0 {
		return x.causeAt(r).Filter == ranking.Feasible
	}
	return x.view.index.IsFeasible(r) && !x.nominated.blocks(r)
}

// candidates returns the number of rows that the decision considers.
func (x *feasibility) candidates() int {
	if x.narrowed != nil {
		return len(x.narrowed)
	}
	return x.engine.table.Rows()
}

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

// feasibleRows lists the feasible rows, in order.
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

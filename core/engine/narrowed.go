package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/table"
)

// A pod may be narrowed to a few named nodes by PreFilter plugins, as a
// DaemonSet's pod is. Its view is for one decision, and knows of these rows alone.

// evaluateNarrowed evaluates the rows that the pod is narrowed to.
func (x *feasibility) evaluateNarrowed() {
	e, v := x.engine, x.view
	x.narrowed = e.rowsOf(v.narrowed)
	v.syncCells()
	v.index.BeginFew(v.shape(), e.table.Rows(), x.narrowed)
	rows := slices.DeleteFunc(slices.Clone(x.narrowed), func(r table.Row) bool { return e.table.Node(r) == nil })
	evaluateRows(rows, v.columns, &e.scratch, v.evaluate, v.update)
}

// keepWithin narrows the pod to the nodes that PreFilter plugins named, and to the
// placement of its pod group.
func (x *feasibility) keepWithin() {
	if x.pre.narrowed != nil {
		x.narrowed = x.engine.rowsOf(x.pre.narrowed)
	}
	switch {
	case x.placement == nil:
	case x.narrowed == nil:
		x.narrowed = x.placement
	default:
		x.narrowed = slices.DeleteFunc(x.narrowed, func(r table.Row) bool { return !x.inPlacement(r) })
	}
}

func (x *feasibility) inPlacement(r table.Row) bool {
	return x.placement == nil || contains(x.placement, r)
}

// contains reports whether the ascending rows include r.
func contains(rows []table.Row, r table.Row) bool {
	_, in := slices.BinarySearch(rows, r)
	return in
}

// nodes returns how many nodes there are for the pod, those included that PreFilter left out.
func (x *feasibility) nodes() int {
	if x.placement != nil {
		return len(x.placement)
	}
	return x.engine.table.Live()
}

// rowsOf returns the rows of those names that are nodes, sorted.
func (e *Engine) rowsOf(names []string) []table.Row {
	rows := make([]table.Row, 0, len(names))
	for _, n := range names {
		if r, ok := e.table.Find(n); ok {
			rows = append(rows, r)
		}
	}
	slices.Sort(rows)
	return slices.Compact(rows)
}

// leftOut returns the blocker of nodes that the decision does not consider.
func (x *feasibility) leftOut() decision.Blocker {
	by := x.pre.narrowedBy
	if len(by) == 0 {
		return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{"node(s) outside of the pod group's placement"}}
	}
	return decision.Blocker{
		Plugin: by[0], Code: decision.UnschedulableAndUnresolvable, Reasons: []string{leftOutReason(by)},
	}
}

// leftOutReason returns v1.36's reason for nodes that PreFilter plugins left out.
func leftOutReason(plugins []string) string {
	sorted := slices.Sorted(slices.Values(plugins))
	return fmt.Sprintf("node(s) didn't satisfy plugin(s) [%s]", strings.Join(sorted, " "))
}

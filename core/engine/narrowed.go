package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/core/table"
)

// A pod may be narrowed to a few named nodes by PreFilter plugins, as a
// DaemonSet's pod is. Its view is for one decision, and knows of these rows alone.

// evaluateNarrowed evaluates the rows that the pod is narrowed to.
func (o *Outcome) evaluateNarrowed() {
	e, v := o.engine, o.view
	o.narrowed = e.rowsOf(v.narrowed)
	e.evaluated = len(o.narrowed)
	v.syncCells()
	v.index.BeginFew(v.shape(), e.table.Rows(), o.narrowed)
	rows := slices.DeleteFunc(slices.Clone(o.narrowed), func(r table.Row) bool { return e.table.Node(r) == nil })
	evaluateRows(rows, v.columns, &e.workerScratch[0], v.evaluate, v.update)
}

// keepWithin keeps the pod within the placement of its pod group.
func (o *Outcome) keepWithin() {
	switch {
	case o.placement == nil:
	case o.narrowed == nil:
		o.narrowed = o.placement
	default:
		o.narrowed = slices.DeleteFunc(o.narrowed, func(r table.Row) bool { return !o.inPlacement(r) })
	}
}

func (o *Outcome) inPlacement(r table.Row) bool {
	return o.placement == nil || contains(o.placement, r)
}

// contains reports whether the ascending rows include r.
func contains(rows []table.Row, r table.Row) bool {
	_, in := slices.BinarySearch(rows, r)
	return in
}

// nodes returns how many nodes there are for the pod, those included that PreFilter left out.
func (o *Outcome) nodes() int {
	if o.placement != nil {
		return len(o.placement)
	}
	return o.engine.table.Live()
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

// leftOutReason returns v1.36's reason for nodes that PreFilter plugins left out.
func leftOutReason(plugins []string) string {
	sorted := slices.Sorted(slices.Values(plugins))
	return fmt.Sprintf("node(s) didn't satisfy plugin(s) [%s]", strings.Join(sorted, " "))
}

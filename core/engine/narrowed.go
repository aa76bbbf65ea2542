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

// evaluateNarrowed sets narrowed to the rows that native PreFilter plugins named, and evaluates
// only these. The view's index then knows of these rows alone.
func (x *feasibility) evaluateNarrowed() {
	e, v := x.engine, x.view
	x.narrowed = e.rowsOf(v.narrowed)
	v.syncCells()
	v.index.BeginFew(v.shape(), e.table.Rows(), x.narrowed)
	rows := slices.DeleteFunc(slices.Clone(x.narrowed), func(r table.Row) bool { return e.table.Node(r) == nil })
	evaluateRows(rows, v.columns, &e.scratch, v.evaluate, v.update)
}

// keepWithin sets narrowed to the rows that PreFilter plugins named and that are in the
// placement of the pod group. It leaves nil if neither restricts the pod.
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

// inPlacement reports whether the row is in the pod group's placement; always true if there
// is none.
func (x *feasibility) inPlacement(r table.Row) bool {
	return x.placement == nil || contains(x.placement, r)
}

// contains reports whether rows, which must be ascending, include r.
func contains(rows []table.Row, r table.Row) bool {
	_, in := slices.BinarySearch(rows, r)
	return in
}

// nodes returns the number of nodes in the placement, or in the table if there is none.
// Nodes that PreFilter left out count.
func (x *feasibility) nodes() int {
	if x.placement != nil {
		return len(x.placement)
	}
	return x.engine.table.Live()
}

// rowsOf returns the rows of the named nodes, ascending, each once. Names of no node are
// left out.
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

// leftOut returns the blocker for a node that the decision did not consider because PreFilter
// plugins did not name it, or, if none restricted the pod, because it is outside of the placement.
func (x *feasibility) leftOut() decision.Blocker {
	by := x.pre.narrowedBy
	if len(by) == 0 {
		return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{"node(s) outside of the pod group's placement"}}
	}
	return decision.Blocker{
		Plugin: by[0], Code: decision.UnschedulableAndUnresolvable, Reasons: []string{leftOutReason(by)},
	}
}

// leftOutReason returns kube-scheduler's reason for nodes that these PreFilter plugins did not name:
// "node(s) didn't satisfy plugin(s) [A B]", with the names sorted.
func leftOutReason(plugins []string) string {
	sorted := slices.Sorted(slices.Values(plugins))
	return fmt.Sprintf("node(s) didn't satisfy plugin(s) [%s]", strings.Join(sorted, " "))
}

package engine

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/table"
)

// Blockers is what blocks the pod on one row, as Outcome.Nodes says it, without a
// look at the other rows. nil: the pod fits there.
func (e *Engine) Blockers(r *Request, nominated Nominations, row table.Row) []decision.Blocker {
	e.trackTerms(nominated)
	v := prepare(e.table, newKeys(r.Profile), r.Pod)
	o := &Outcome{engine: e, view: v, pod: r.Pod, Row: -1, Rejected: v.rejected}
	o.nominated.Nominations = nominated
	if v.narrowed != nil {
		o.narrowed = e.rowsOf(v.narrowed)
	}
	v.syncCells()
	return o.blockers(row)
}

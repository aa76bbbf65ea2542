package engine

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/table"
)

// Blockers returns what blocks the pod on one row, as Outcome.Nodes says it, without a
// look at the other rows. nil: the pod fits there.
func (e *Engine) Blockers(r *Request, nominated Nominator, row table.Row) []decision.Blocker {
	e.trackTerms(nominated)
	o := &Outcome{engine: e, view: prepare(e.table, newKeys(r.Profile), r.Pod), pod: r.Pod, Row: -1}
	if o.preFilterHosted(r); o.Rejected == nil {
		o.nominated.Nominator = nominated
		if o.pre.narrowed != nil {
			o.narrowed = e.rowsOf(o.pre.narrowed)
		}
		o.view.syncCells()
	}
	return o.blockers(row)
}

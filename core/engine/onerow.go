package engine

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/table"
)

// Blockers returns what blocks the pod on one row, as Outcome.Nodes says it, without a
// look at the other rows. nil: the pod fits there.
func (e *Engine) Blockers(r *Request, nominated Nominator, row table.Row) []decision.Blocker {
	e.tracked.Follow(e.table, nominated)
	d := e.aside(r)
	if d.preFilterHosted(r); d.Rejected == nil {
		d.nominated.Nominator = nominated
		d.keepWithin()
		d.view.syncCells()
	}
	return (&Outcome{work: d}).blockers(row)
}

package engine

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/table"
)

// Blockers returns all that blocks the pod on one row, nominated pods counted, without evaluating
// other rows; nil if the pod fits there. If PreFilter or RejectPod rejects the pod as a whole, that
// is the only blocker.
func (e *Engine) Blockers(r *Request, nominated Nominator, row table.Row) []decision.Blocker {
	e.tracked.Follow(e.table, nominated)
	d := e.aside(r)
	d.preFilterHosted(r)
	if d.rejectWhole(nominated); d.Rejected == nil {
		d.nominated.Nominator = nominated
		d.keepWithin()
		d.setNominated(nominated)
		d.view.syncCells()
	}
	return (&Outcome{work: d}).blockers(row)
}

package framework

import (
	"slices"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// Exchanged returns the filter's verdict on the row if the pods on it with a priority
// lower than below left, and the pods in came, which are placed nowhere, were added. It
// shows whether preemption on the node could help, without a trial placement: the table is
// not changed. known is false if only a trial can tell. Only the owner of the machine
// calls it.
func (p *Plugin) Exchanged(in *Input, row table.Row, below int32, came []*object.Pod) (v Verdict, known bool) {
	switch {
	case p.CellFilter != nil && p.CellFilter.Exchanged != nil:
		return p.CellFilter.Exchanged(in, row, below, came)
	case in.Sums != nil:
		v, known := sums.VerdictExchanged(in.Sums, in.Table, row, below, came)
		return Verdict(v), known
	case in.Conflicts != nil:
		return in.conflict(row, below, came), true
	case p.Filter != nil && p.Locality == NodeOnly:
		return p.VerdictOn(in, row), true
	}
	return Fits, false
}

// conflict returns Conflict if the pod conflicts with one on the row of at least priority
// below, or with one in came; else Fits.
func (in *Input) conflict(row table.Row, below int32, came []*object.Pod) Verdict {
	if slices.ContainsFunc(came, in.Conflicts) {
		return Conflict
	}
	for _, placed := range in.Table.Pods(row) {
		if placed.Pod.Priority >= below && in.Conflicts(placed.Pod) {
			return Conflict
		}
	}
	return Fits
}

// VerdictOn calls Filter for one row of the table as it is now. The plugin must have
// Filter.
func (p *Plugin) VerdictOn(in *Input, row table.Row) Verdict {
	var out [1]Verdict
	p.Filter(in, in.Table.All()[row:row+1], out[:])
	return out[0]
}

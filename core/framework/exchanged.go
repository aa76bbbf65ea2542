package framework

import (
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// Exchanged returns the filter's verdict on the row for the case that the pods on it with
// a priority lower than below leave, and then the pods of came, which are placed nowhere,
// come. known is false if that takes a trial with all filters, or if the filter is costly.
// The owner of the machine calls it. The table is as before when it returns.
func (p *Plugin) Exchanged(in *Input, row table.Row, below int32, came []*object.Pod) (v Verdict, known bool) {
	switch {
	case p.CellFilter != nil && p.CellFilter.Exchanged != nil:
		return p.CellFilter.Exchanged(in, row, below, came)
	case in.Sums != nil:
		v, known := sums.VerdictExchanged(in.Sums, in.Table, row, below, came)
		return Verdict(v), known
	case p.Filter != nil && p.Locality == NodeOnly:
		return p.VerdictOn(in, row), true
	case p.Filter != nil && p.Locality == NodeAndPods && !p.Costly:
		return p.tryExchanged(in, row, below, came), true
	}
	return Fits, false
}

// tryExchanged asks the filter about the row while the pods are gone and placed.
func (p *Plugin) tryExchanged(in *Input, row table.Row, below int32, came []*object.Pod) Verdict {
	t := in.Table
	mark := t.Checkpoint()
	defer t.Undo(mark)
	var gone []*object.Pod
	for placed := range t.Lower(row, below) {
		gone = append(gone, placed.Pod)
	}
	for _, q := range gone {
		t.RemovePod(q.UID)
	}
	for _, q := range came {
		t.AddPod(q, t.Name(row))
	}
	return p.VerdictOn(in, row)
}

// VerdictOn returns the filter's verdict on one row of the table as it stands.
func (p *Plugin) VerdictOn(in *Input, row table.Row) Verdict {
	var out [1]Verdict
	p.Filter(in, in.Table.All()[row:row+1], out[:])
	return out[0]
}

package plugintest

import (
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// CheckExchanged compares what the plugin's Exchanged returns, for the row without the
// pods of a priority lower than below and with the pods of came, with the filter's
// verdict once they are really removed and placed. in holds the state of PreFilter. It
// reports whether Exchanged knew a verdict.
func CheckExchanged(t Fatal, p *framework.Plugin, in *framework.Input, row table.Row, below int32, came ...*object.Pod) bool {
	t.Helper()
	var gone []*object.Pod
	for pl := range in.Table.Lower(row, below) {
		gone = append(gone, pl.Pod)
	}
	if p.CellFilter != nil {
		p.CellFilter.Sync(in)
	}
	said, known := p.Exchanged(in, row, below, came)
	mark := in.Table.Checkpoint()
	defer in.Table.Undo(mark)
	for _, q := range gone {
		in.Table.RemovePod(q.UID)
	}
	for _, q := range came {
		in.Table.AddPod(q, in.Table.Name(row))
	}
	var tried [1]framework.Verdict
	filterOf(t, *p, in)(in, in.Table.All()[row:row+1], tried[:])
	if known && said != tried[0] {
		t.Fatalf("%s: node %s without %d of its pods and with %d others: verdict %b, by a try %b", p.Name, in.Table.Name(row), len(gone), len(came), said, tried[0])
	}
	return known
}

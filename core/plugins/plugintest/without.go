package plugintest

import (
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// CheckWithoutPods compares what the plugin's WithoutPods says of the row without the
// pods that goes picks with what its filter says once they are removed. in holds what
// PreFilter prepared. It tells whether WithoutPods knew.
func CheckWithoutPods(t Fatal, p *framework.Plugin, in *framework.Input, row table.Row, goes func(*object.Pod) bool) bool {
	t.Helper()
	var gone []*object.Pod
	for _, pl := range in.Table.Pods(row) {
		if goes(pl.Pod) {
			gone = append(gone, pl.Pod)
		}
	}
	if p.CellFilter != nil {
		p.CellFilter.Sync(in)
	}
	said, known := p.WithoutPods(in, row, slices.Clone(gone))
	mark := in.Table.Checkpoint()
	defer in.Table.Undo(mark)
	for _, q := range gone {
		in.Table.RemovePod(q.UID)
	}
	var tried [1]framework.Verdict
	filterOf(*p, in)(in, in.Table.All()[row:row+1], tried[:])
	if known && said != tried[0] {
		t.Fatalf("%s: node %s without %d of its pods: verdict %b, by a try %b", p.Name, in.Table.Name(row), len(gone), said, tried[0])
	}
	return known
}

package engine

import (
	"fmt"
	"testing"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// columns is a profile of plugins that read columns, as those of the product
// do: two filters, a score that is final, two that are normalised.
func columns() *profile.Profile {
	request := func(key []byte, _ *table.Table, p *object.Pod) []byte { return p.Demand.Usage.AppendKey(key) }
	rank := func(in *framework.Input, rows []table.Row, out []int64) {
		for i := range out {
			if n := in.Table.Node(rows[i]); n != nil {
				out[i] = int64(len(n.Labels))
			}
		}
	}
	silent := func(*framework.Input, table.Row, framework.Verdict) decision.Blocker { return decision.Blocker{} }
	share := func(raw, _, high int64) int64 { return 100 * raw / max(1, high) }
	plugins := []*framework.Plugin{
		{
			Name: "Ready",
			FilterPlugin: framework.FilterPlugin{
				Filter: func(in *framework.Input, rows []table.Row, out []framework.Verdict) {
					for i := range out {
						n := in.Table.Node(rows[i])
						out[i] = when(n != nil && n.Unschedulable)
					}
				},
				Explain: silent,
			},
		},
		{
			Name:       "Fit",
			SignPlugin: framework.SignPlugin{Locality: framework.NodeAndPods, Sign: request},
			FilterPlugin: framework.FilterPlugin{
				Filter: func(in *framework.Input, rows []table.Row, out []framework.Verdict) {
					used, offered, cpu := in.Table.Used(table.CPU), in.Table.Allocatable(table.CPU), in.Pod.Demand.Usage.MilliCPU
					for i := range out {
						out[i] = when(used[rows[i]]+cpu > offered[rows[i]])
					}
				},
				Explain: silent,
			},
			ScorePlugin: framework.ScorePlugin{
				Score: func(in *framework.Input, rows []table.Row, out []int64) {
					used, offered, cpu := in.Table.Used(table.CPU), in.Table.Allocatable(table.CPU), in.Pod.Demand.Usage.MilliCPU
					for i := range out {
						r := rows[i]
						out[i] = max(0, 100*(offered[r]-used[r]-cpu)/max(1, offered[r]))
					}
				},
			},
		},
		{
			Name:        "Rank",
			ScorePlugin: framework.ScorePlugin{Score: rank, NormalizeScore: share},
		},
		{
			Name:        "Other",
			ScorePlugin: framework.ScorePlugin{Score: rank, NormalizeScore: share},
		},
	}
	p := &profile.Profile{Name: "bench"}
	for _, pl := range plugins {
		if pl.Filter != nil {
			p.Filter = append(p.Filter, pl)
		}
		if pl.Score != nil {
			p.Score = append(p.Score, profile.Scorer{Plugin: pl, Weight: 1})
		}
	}
	return p
}

// BenchmarkDecide decides on pods for 5,000 nodes; each is placed where it is
// to go before the next comes. A thousand pods run at a time.
func BenchmarkDecide(b *testing.B) {
	for name, class := range map[string]func(i int) int64{
		"one class":     func(int) int64 { return 0 },
		"150 classes":   func(i int) int64 { return int64(i % 150) },
		"never repeats": func(i int) int64 { return int64(i) },
	} {
		b.Run(name, func(b *testing.B) {
			t, p := table.New(), columns()
			for i := range 5000 {
				t.SetNode(newNode(fmt.Sprint("node-", i), map[string]string{"a": "b"}, 64000, 1<<40))
			}
			e := New(t, seed, 1)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				pod := newPod(fmt.Sprint("p", i%1000), nil, 100, class(i))
				t.AddPod(pod, t.Name(e.Decide(For(p, pod), nil).Row))
			}
		})
	}
}

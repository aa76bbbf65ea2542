package podtopologyspread

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
)

func (w *world) input(q *question, state any) *framework.Input {
	return &framework.Input{Table: w.Table, Pod: q.pod, State: state}
}

func (w *world) compareFilter(t *rapid.T, q *question, k *kept) {
	want := q.filter(w.tried())
	if (want == nil) != k.filter.Skip {
		t.Fatalf("%d constraints, PreFilter skips: %v", len(q.of(v1.DoNotSchedule)), k.filter.Skip)
	}
	if want == nil {
		return
	}
	in := w.input(q, k.filter.State)
	w.plugin.CellFilter.Sync(in)
	k.synced, k.revision = true, w.Revision()
	cells, byRow := w.cells(t, in, w.plugin.CellFilter.Cells), make([]framework.Verdict, w.Rows())
	w.plugin.CellFilter.AskRows(in, w.All(), byRow)
	if k.late {
		return
	}
	for _, r := range slices.Sorted(maps.Keys(want)) {
		got, v := "", w.plugin.CellFilter.Filter(in, cells[r])
		if v != byRow[r] {
			t.Fatalf("node %v for %+v: %d by row, %d by cell", w.Node(r).Labels, q.list, byRow[r], v)
		}
		if v != framework.Fits {
			b := w.plugin.Explain(in, r, v)
			got = fmt.Sprintf("%v: %s", b.Code, strings.Join(b.Reasons, ", "))
		}
		if got != want[r] {
			t.Fatalf("node %v for %+v: %q, want %q", w.Node(r).Labels, q.list, got, want[r])
		}
	}
	w.compareFresh(t, q, in.State.(*counts))
}

// compareFresh compares counts that are kept with counts that are made now.
func (w *world) compareFresh(t *rapid.T, q *question, c *counts) {
	fresh := w.plugin.PreFilter(w.Table, q.pod).State.(*counts)
	fresh.sync(w.Table)
	if len(w.marks) > 0 {
		return
	}
	for i := range c.constraints {
		a, b := &c.columns[c.of[i]], &fresh.columns[fresh.of[i]]
		if a.leastPods(0) != b.leastPods(0) || a.least.ties != b.least.ties || a.eligible.domains != b.eligible.domains {
			t.Fatalf("constraint %d: kept %+v in %d domains, fresh %+v in %d", i, a.least, a.eligible.domains, b.least, b.eligible.domains)
		}
		if now, want := a.podsByValue(), b.podsByValue(); !maps.Equal(now, want) {
			t.Fatalf("constraint %d: kept %v, fresh %v", i, now, want)
		}
	}
	w.compareAdmitted(t, q, c.census)
	fresh.Release()
}

// compareAdmitted: nodes meet the policies that they meet when looked at.
func (w *world) compareAdmitted(t *rapid.T, q *question, s *census) {
	for _, r := range w.All() {
		want := policy(0)
		if n := w.Node(r); n != nil {
			if !slices.Contains(s.layout.Domains(s.layout.Locations()[r]), domain.Missing) {
				want |= topologyLabels
			}
			if s.nodes.any&affinity != 0 && q.pod.RequiredNodes.Matches(n.Subject()) {
				want |= affinity
			}
			if s.nodes.any&taints != 0 && q.pod.Tolerations.Admits(n.Taints, false) {
				want |= taints
			}
		}
		if s.admitted[r] != want {
			t.Fatalf("row %d meets %b, kept %b", r, want, s.admitted[r])
		}
	}
}

func (col *column) podsByValue() map[string]int64 {
	pods := map[string]int64{}
	for d, n := range col.eligible.nodes {
		if domain.Domain(d) >= domain.Unnamed && n > 0 {
			pods[col.Name(domain.Domain(d))] = col.Sums[d]
		}
	}
	return pods
}

func (w *world) compareScore(t *rapid.T, q *question, k *kept) {
	var feasible []table.Row
	odd := w.rand.IntN(3)
	for i := range w.Rows() {
		if r := table.Row(i); w.Node(r) != nil && (odd == 0 || w.chance(60)) {
			feasible = append(feasible, r)
		}
	}
	want := q.score(w.scene(), feasible)
	if (want == nil) != k.score.Skip {
		t.Fatalf("%d constraints, PreScore skips: %v", len(q.of(v1.ScheduleAnyway)), k.score.Skip)
	}
	if want == nil {
		return
	}
	in := w.input(q, k.score.State)
	w.plugin.CellScore.Sync(in)
	cells := w.cells(t, in, w.plugin.CellScore.Cells)
	count := map[int64]int{}
	for _, r := range feasible {
		count[cells[r]]++
	}
	var list []framework.CellCount
	for cell, n := range count {
		list = append(list, framework.CellCount{Cell: cell, Nodes: n})
	}
	w.plugin.CellScore.FeasibleNodes(in, list)
	weights := slices.Clone(in.State.(*counts).weights.sizes)
	w.plugin.CellScore.TellFeasible(in, feasible)
	if byRow := in.State.(*counts).weights.sizes; !slices.Equal(byRow, weights) {
		t.Fatalf("for %+v: %d domains by row, %d by cell", q.list, byRow, weights)
	}
	byRow := make([]int64, len(feasible))
	w.plugin.CellScore.AskRows(in, feasible, byRow)
	var raws []int64
	for cell := range count {
		if raw := w.plugin.CellScore.Score(in, cell); raw != framework.NoScore {
			raws = append(raws, raw)
		}
	}
	for i, r := range feasible {
		raw := w.plugin.CellScore.Score(in, cells[r])
		if raw != byRow[i] {
			t.Fatalf("node %v for %+v: %d by row, %d by cell", w.Node(r).Labels, q.list, byRow[i], raw)
		}
		got := scored{none: raw == framework.NoScore}
		if !got.none {
			got.raw, got.normalized = raw, w.plugin.NormalizeScore(raw, slices.Min(raws), slices.Max(raws))
		}
		if got != want[r] {
			t.Fatalf("node %v for %+v: %+v, want %+v", w.Node(r).Labels, q.list, got, want[r])
		}
	}
}

// cells asks for all rows at once and again in parts.
func (w *world) cells(t *rapid.T, in *framework.Input, of func(*framework.Input, []table.Row, []int64)) []int64 {
	whole, parts := make([]int64, w.Rows()), make([]int64, w.Rows())
	of(in, in.Table.All(), whole)
	for r := range parts {
		of(in, in.Table.All()[r:r+1], parts[r:r+1])
	}
	if !slices.Equal(whole, parts) {
		t.Fatalf("cells %v in one range, %v in parts", whole, parts)
	}
	return whole
}

package plugintest

import (
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Answer is everything that a plugin's extension points return for one pod.
type Answer struct {
	// Rejected is PreFilter's or PreScore's status, as "code: reasons".
	Rejected string
	// Named are the nodes that PreFilter narrows to.
	Named []string
	// Blocked is Filter's "code: reasons" by node, "" for a node that fits. It is nil if
	// PreFilter skips.
	Blocked map[string]string
	// Scores holds the raw score by node, nil if PreScore skips.
	Scores map[string]int64
}

// Fatal is the part of testing.TB and rapid.T that is needed here.
type Fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Ask runs the plugin's extension points for the pod over the whole table.
func Ask(t Fatal, p framework.Plugin, tb *table.Table, pod *object.Pod) Answer {
	t.Helper()
	a := Answer{}
	in := &framework.Input{Table: tb, Pod: pod}
	var prepared framework.PreFilterResult
	if p.PreFilter != nil {
		prepared = p.PreFilter(tb, pod)
	}
	if a.Rejected = text(prepared.Status); a.Rejected != "" {
		return a
	}
	a.Named, in.State, in.Rules = prepared.NodeNames, prepared.State, prepared.Rules
	if filter := filterOf(t, p, in); filter != nil && !prepared.Skip {
		a.Blocked = map[string]string{}
		for row, v := range kernel(t, p.Name+" Filter", in, filter) {
			if n := tb.Node(table.Row(row)); n != nil {
				a.Blocked[n.Name] = explained(&p, in, table.Row(row), v)
			}
		}
	}
	var scoring framework.PreScoreResult
	if p.PreScore != nil {
		scoring = p.PreScore(tb, pod)
	}
	if a.Rejected = text(scoring.Status); a.Rejected != "" {
		return a
	}
	in.State = scoring.State
	if score := a.scoreOf(t, p, in); score != nil && !scoring.Skip {
		a.Scores = map[string]int64{}
		for row, s := range kernel(t, p.Name+" Score", in, score) {
			if n := tb.Node(table.Row(row)); n != nil {
				a.Scores[n.Name] = s
			}
		}
	}
	return a
}

// filterOf returns the plugin's Filter, or a function that calls its CellFilter for
// each row.
func filterOf(t Fatal, p framework.Plugin, in *framework.Input) func(*framework.Input, []table.Row, []framework.Verdict) {
	if p.CellFilter == nil {
		return p.Filter
	}
	if p.CellFilter.Sync != nil && in.State != nil {
		p.CellFilter.Sync(in)
	}
	return byCells(t, p.CellFilter.AskRows, p.CellFilter.Cells, p.CellFilter.Filter)
}

// scoreOf returns the plugin's Score, or a function that calls its CellScore for each
// row. The nodes that a does not block are feasible.
func (a Answer) scoreOf(t Fatal, p framework.Plugin, in *framework.Input) func(*framework.Input, []table.Row, []int64) {
	c := p.CellScore
	if c == nil {
		return p.Score
	}
	if c.Sync != nil && in.State != nil {
		c.Sync(in)
	}
	if c.FeasibleNodes != nil && in.State != nil {
		nodes := map[int64]int{}
		for _, r := range in.Table.All() {
			if n := in.Table.Node(r); n != nil && a.Blocked[n.Name] == "" {
				var cell [1]int64
				c.Cells(in, in.Table.All()[r:r+1], cell[:])
				nodes[cell[0]]++
			}
		}
		var feasible []framework.CellCount
		for cell, n := range nodes { // any order: it is not defined
			feasible = append(feasible, framework.CellCount{Cell: cell, Nodes: n})
		}
		c.FeasibleNodes(in, feasible)
	}
	return byCells(t, c.AskRows, c.Cells, c.Score)
}

// byCells returns a function that gives each row the result of its cell. It fails the
// test if byRow returns something else.
func byCells[T framework.Verdict | int64](t Fatal, byRow func(*framework.Input, []table.Row, []T), cells func(*framework.Input, []table.Row, []int64), of func(*framework.Input, int64) T) func(*framework.Input, []table.Row, []T) {
	return func(in *framework.Input, rows []table.Row, out []T) {
		at, same := make([]int64, len(rows)), dirty[T](len(rows))
		cells(in, rows, at)
		byRow(in, rows, same)
		for i, r := range rows {
			if in.Table.Node(r) == nil {
				continue
			}
			if out[i] = of(in, at[i]); same[i] != out[i] {
				t.Fatalf("node %s: %v by its cell, %v by row", in.Table.Name(r), out[i], same[i])
			}
		}
	}
}

// text returns "code: reasons"; "" for nil.
func text(s *decision.Status) string {
	switch {
	case s == nil:
		return ""
	case s.Err != nil:
		return s.Code.String() + ": " + s.Err.Error()
	}
	return s.Code.String() + ": " + strings.Join(s.Reasons, ", ")
}

// explained returns the reasons of a verdict as text; "" for Fits.
func explained(p *framework.Plugin, in *framework.Input, row table.Row, v framework.Verdict) string {
	if v == framework.Fits {
		return ""
	}
	b := p.Explain(in, row, v)
	return text(&decision.Status{Code: b.Code, Reasons: b.Reasons})
}

// kernel calls f for all rows at once, and again for one to three rows at a time, with
// out slices full of other values. It fails the test if the results differ, and returns
// them by row.
func kernel[T framework.Verdict | int64](t Fatal, what string, in *framework.Input, f func(*framework.Input, []table.Row, []T)) []T {
	t.Helper()
	n := in.Table.Rows()
	whole, parts := dirty[T](n), dirty[T](n)
	all := in.Table.All()
	f(in, all, whole)
	for from, size := 0, 1; from < n; from, size = from+size, size%3+1 {
		to := min(from+size, n)
		f(in, all[from:to], parts[from:to])
	}
	for row := range n {
		if in.Table.Node(table.Row(row)) != nil && whole[row] != parts[row] {
			t.Fatalf("%s: node %s: %v in the whole range, %v in a part", what, in.Table.Name(table.Row(row)), whole[row], parts[row])
		}
	}
	return whole
}

// dirty returns a slice that is not zero.
func dirty[T framework.Verdict | int64](n int) []T { return slices.Repeat([]T{77}, n) }

// Normalized applies the plugin's NormalizeScore to the scores of the nodes that
// Filter did not reject, as the engine does. Nodes without a score have 0.
func (a Answer) Normalized(p framework.Plugin) map[string]int64 {
	var raw []int64
	scores := map[string]int64{}
	for node, s := range a.Scores { // any order: only the extremes count
		if a.Blocked[node] != "" {
			continue
		}
		if scores[node] = 0; s != framework.NoScore {
			raw = append(raw, s)
		}
	}
	for node := range scores { // any order: each by itself
		if s := a.Scores[node]; s != framework.NoScore {
			scores[node] = p.NormalizeScore(s, slices.Min(raw), slices.Max(raw))
		}
	}
	return scores
}

// Table returns a table of the nodes.
func Table(nodes ...*object.Node) *table.Table {
	t := table.New()
	for _, n := range nodes {
		t.SetNode(n)
	}
	return t
}

// Queues reports whether the plugin registered for the event, and its hint would queue
// the rejected pod.
func Queues(p framework.Plugin, pod *object.Pod, e framework.Event) bool {
	return slices.ContainsFunc(p.EventsToRegister, func(w framework.ClusterEventWithHint) bool {
		return w.Resource == e.Resource && w.ActionType&e.ActionType != 0 && (w.QueueingHintFn == nil || w.QueueingHintFn(pod, &e))
	})
}

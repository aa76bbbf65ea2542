package plugintest

import (
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Answer is all that a plugin says about one pod.
type Answer struct {
	// Rejected is PreFilter's or PreScore's status, as "code: reasons".
	Rejected string
	// Named are the nodes that PreFilter narrows to.
	Named []string
	// Blocked has, by node, Filter's "code: reasons", "" for a node that fits.
	// It is nil when PreFilter skips.
	Blocked map[string]string
	// Scores has the raw score by node, nil when PreScore skips.
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
	a.Named, in.State = prepared.NodeNames, prepared.State
	if p.Filter != nil && !prepared.Skip {
		a.Blocked = map[string]string{}
		for row, v := range kernel(t, p.Name+" Filter", in, p.Filter) {
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
	if p.Score != nil && !scoring.Skip {
		a.Scores = map[string]int64{}
		for row, s := range kernel(t, p.Name+" Score", in, p.Score) {
			if n := tb.Node(table.Row(row)); n != nil {
				a.Scores[n.Name] = s
			}
		}
	}
	return a
}

func text(s *decision.Status) string {
	switch {
	case s == nil:
		return ""
	case s.Err != nil:
		return s.Code.String() + ": " + s.Err.Error()
	}
	return s.Code.String() + ": " + strings.Join(s.Reasons, ", ")
}

func explained(p *framework.Plugin, in *framework.Input, row table.Row, v framework.Verdict) string {
	if v == framework.Fits {
		return ""
	}
	code, reasons := p.Explain(in, row, v)
	return text(&decision.Status{Code: code, Reasons: reasons})
}

// kernel runs f over all rows at once and again over one, two and three rows
// at a time, over memory that holds something else.
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

func dirty[T framework.Verdict | int64](n int) []T { return slices.Repeat([]T{77}, n) }

// Normalized applies the plugin's Normalize over all of the scores.
func (a Answer) Normalized(p framework.Plugin) map[string]int64 {
	var raw []int64
	for _, s := range a.Scores { // any order: only the extremes count
		raw = append(raw, s)
	}
	scores := map[string]int64{}
	for node, s := range a.Scores { // any order: into a map
		scores[node] = p.NormalizeScore(s, slices.Min(raw), slices.Max(raw))
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

// Queues tells whether the plugin registers the event, and its hint would queue
// the rejected pod.
func Queues(p framework.Plugin, pod *object.Pod, e framework.Event) bool {
	return slices.ContainsFunc(p.EventsToRegister, func(w framework.ClusterEventWithHint) bool {
		return w.Resource == e.Resource && w.ActionType&e.ActionType != 0 && (w.QueueingHintFn == nil || w.QueueingHintFn(pod, &e))
	})
}

package engine

import (
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/table"
)

// Extender is the plugin name under which all extenders together reject a pod or a node
// (kube-scheduler's framework.ExtenderName).
const Extender = "Extender"

// ExtenderResults holds what extenders answered, by node name. Nodes that no longer exist
// are ignored.
type ExtenderResults struct {
	// Passed are the only nodes that may be chosen; nil: all.
	Passed []string
	// Refused holds the reason for nodes outside of Passed. It lacks nodes that an
	// extender left out without a reason.
	Refused map[string]decision.Blocker
	// Scores are added to those of the plugins, by their weight.
	Scores map[string][]decision.Score
}

// Clone returns a copy with its own slice and maps.
func (x *ExtenderResults) Clone() ExtenderResults {
	return ExtenderResults{Passed: slices.Clone(x.Passed), Refused: maps.Clone(x.Refused), Scores: maps.Clone(x.Scores)}
}

// extenderResults holds what extenders answered, by row.
type extenderResults struct {
	all     bool // all nodes passed; passed is not read then
	passed  map[table.Row]bool
	refused map[table.Row]decision.Blocker // reasons for rows that did not pass; some have none
	scores  map[table.Row][]decision.Score
	bonus   map[table.Row]int64 // the weighted sum of the scores
}

// DecideWithExtenders chooses the best node for a pod for which results holds the answers of
// extenders. It ignores the pod's own nomination: the caller tries that node first.
func (e *Engine) DecideWithExtenders(r *Request, nominated Nominator, results *ExtenderResults) *Outcome {
	rv := &extenderResults{
		all: results.Passed == nil, passed: map[table.Row]bool{}, refused: map[table.Row]decision.Blocker{},
		scores: map[table.Row][]decision.Score{}, bonus: map[table.Row]int64{},
	}
	for _, name := range results.Passed {
		if row, ok := e.table.Find(name); ok {
			rv.passed[row] = true
		}
	}
	for name, b := range results.Refused { // any order: fills a map
		if row, ok := e.table.Find(name); ok {
			rv.refused[row] = b
		}
	}
	for name, scores := range results.Scores { // any order: fills a map
		if row, ok := e.table.Find(name); ok {
			rv.scores[row] = scores
			for _, s := range scores {
				rv.bonus[row] += s.Score * s.Weight
			}
		}
	}
	return e.decide(r, nominated, rv, nil)
}

// passes reports whether the extenders let the row pass.
func (r *extenderResults) passes(row table.Row) bool { return r.all || r.passed[row] }

// blocker returns the reason for which a row that does not pass is rejected. As in
// kube-scheduler, a node that an extender leaves out without a reason is
// UnschedulableAndUnresolvable, with no message.
func (r *extenderResults) blocker(row table.Row) decision.Blocker {
	b, told := r.refused[row]
	if !told {
		b.Code = decision.UnschedulableAndUnresolvable
	}
	b.Plugin = Extender
	return b
}

// extenderTallies returns the counts of the nodes that pass the filters but not the extenders, by
// code and reasons, sorted by reasons.
func (o *Outcome) extenderTallies() []decision.Tally {
	var tallies []decision.Tally
	for i, n := 0, o.work.candidates(); i < n; i++ {
		row := o.work.candidate(i)
		if !o.work.passesFilters(row) || o.work.extenders.passes(row) {
			continue
		}
		b := o.work.extenders.blocker(row)
		at := slices.IndexFunc(tallies, func(t decision.Tally) bool {
			return t.Code == b.Code && slices.Equal(t.Reasons, b.Reasons)
		})
		if at < 0 {
			at, tallies = len(tallies), append(tallies, decision.Tally{Blocker: b})
		}
		tallies[at].Nodes++
	}
	slices.SortFunc(tallies, func(a, b decision.Tally) int { return slices.Compare(a.Reasons, b.Reasons) })
	return tallies
}

// FeasibleNodes lists the names of the feasible nodes in the order of their rows; nil if
// there are none. The caller owns the slice.
func (o *Outcome) FeasibleNodes() []string {
	if o.Feasible == 0 {
		return nil
	}
	rows := o.work.feasibleRows()
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = o.work.engine.table.Name(r)
	}
	return names
}

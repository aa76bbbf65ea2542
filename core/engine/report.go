package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
)

// Tallies counts the infeasible nodes by first blocker, in the profile's
// plugin order, then by reasons. The counts add up to the nodes that are not
// feasible.
func (o *Outcome) Tallies() []decision.Tally {
	if o.view.class.rejected != nil {
		return o.wholly()
	}
	o.considerRest()
	counts := map[blockKey]int{}
	if o.rows == nil && len(o.view.cellFilters) == 0 {
		counts = o.view.causes.tally()
		recount := func(r table.Row, b block) {
			if k := o.view.first(r); k.filter > 0 {
				uncount(counts, k)
			}
			counts[blockKey(b)]++
		}
		for r, b := range o.blocked { // any order: adds up
			recount(r, b)
		}
		for r, b := range o.rest { // any order: adds up
			recount(r, b)
		}
	} else {
		for i, n := 0, o.candidates(); i < n; i++ {
			if k := o.blockAt(o.candidate(i)); k.filter > 0 {
				counts[k]++
			}
		}
	}
	tallies := make([]decision.Tally, 0, len(counts)+1)
	for _, k := range sortedKeys(counts) {
		tallies = append(tallies, decision.Tally{Blocker: o.explain(k, o.sample(k)), Nodes: counts[k]})
	}
	if rest := o.engine.table.Live() - len(o.rows); o.rows != nil && rest > 0 {
		tallies = append(tallies, decision.Tally{Blocker: o.leftOut(), Nodes: rest})
	}
	if o.review != nil {
		tallies = append(tallies, o.refusals()...)
	}
	return tallies
}

// uncount takes one off; none left is no entry.
func uncount(counts map[blockKey]int, k blockKey) {
	if counts[k]--; counts[k] == 0 {
		delete(counts, k)
	}
}

func (o *Outcome) wholly() []decision.Tally {
	s := o.view.class.rejected
	return []decision.Tally{{
		Blocker: decision.Blocker{Plugin: s.Plugin, Code: s.Code, Reasons: s.Reasons},
		Nodes:   o.engine.table.Live(),
	}}
}

func sortedKeys(counts map[blockKey]int) []blockKey {
	keys := make([]blockKey, 0, len(counts))
	for k := range counts { // any order: sorted below
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b blockKey) int {
		return cmp.Or(cmp.Compare(a.filter, b.filter), cmp.Compare(a.verdict, b.verdict))
	})
	return keys
}

// sample finds a row that was blocked in this way, for Explain to look at.
func (o *Outcome) sample(k blockKey) table.Row {
	for i, n := 0, o.candidates(); i < n; i++ {
		if r := o.candidate(i); o.blockAt(r) == k {
			return r
		}
	}
	return -1
}

func (o *Outcome) explain(k blockKey, r table.Row) decision.Blocker {
	f := &o.view.filters[k.filter-1]
	in := f.in
	if o.view.failing(k) {
		in.Pod = o.pod // the error may name what is the pod's own
	}
	code, reasons := f.Explain(&in, r, k.verdict)
	return decision.Blocker{Plugin: f.Name, Code: code, Reasons: reasons}
}

func (o *Outcome) leftOut() decision.Blocker {
	by := o.view.class.narrowedBy
	return decision.Blocker{
		Plugin: by[0], Code: decision.UnschedulableAndUnresolvable, Reasons: []string{leftOut(by)},
	}
}

// RejectedBy names the plugins that rejected some node or the pod as a whole,
// sorted.
func (o *Outcome) RejectedBy() []string {
	names := slices.Clone(o.view.class.narrowedBy)
	for _, t := range o.Tallies() {
		names = append(names, t.Plugin)
	}
	if s := o.view.class.rejected; s != nil {
		names = append(names, s.Plugin)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Code tells how the row's node was rejected: Unschedulable where removing
// pods may help, UnschedulableAndUnresolvable where nothing will; Success where it is
// feasible.
func (o *Outcome) Code(r table.Row) decision.Code {
	if s := o.view.class.rejected; s != nil {
		return s.Code
	}
	if o.rows != nil && !slices.Contains(o.rows, r) {
		return decision.UnschedulableAndUnresolvable
	}
	o.considerRest()
	k := o.blockAt(r)
	switch k.filter {
	case feasible:
		if o.review != nil && !o.review.passes(r) {
			return o.review.blocker(r).Code
		}
		return decision.Success
	case noNode:
		return decision.UnschedulableAndUnresolvable
	}
	code, known := o.codes[k]
	if !known {
		if o.codes == nil {
			o.codes = map[blockKey]decision.Code{}
		}
		code = o.explain(k, r).Code
		o.codes[k] = code
	}
	return code
}

// Refit runs the filters on one row of the table as it stands now, first with
// the pods placed that are nominated there and count against the pod, then
// without; nil when it fits both times.
func (o *Outcome) Refit(r table.Row, nominated Nominations) *decision.Blocker {
	var found *decision.Blocker
	run := func() {
		if b, rejected := firstBlock(o.view.filters, r); rejected {
			out := o.explain(blockKey(b), r)
			found = &out
		}
	}
	if nominated != nil {
		o.withNominated(r, nominated, run)
	}
	if found == nil {
		run()
	}
	return found
}

// Nodes answers for every node in full: all blockers of the infeasible ones,
// all scores of the others. Sorted by name.
func (o *Outcome) Nodes() []decision.Node {
	o.considerRest()
	t := o.engine.table
	nodes := make([]decision.Node, 0, t.Live())
	for i := range t.Rows() {
		r := table.Row(i)
		if t.Node(r) == nil {
			continue
		}
		n := decision.Node{Name: t.Name(r)}
		if n.Blockers = o.blockers(r); len(n.Blockers) == 0 {
			n.Feasible = true
			n.Total, n.Scores = o.scores(r)
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b decision.Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes
}

func (o *Outcome) blockers(r table.Row) []decision.Blocker {
	if s := o.view.class.rejected; s != nil {
		return []decision.Blocker{{Plugin: s.Plugin, Code: s.Code, Reasons: s.Reasons}}
	}
	if o.rows != nil && !slices.Contains(o.rows, r) {
		return []decision.Blocker{o.leftOut()}
	}
	var all []decision.Blocker
	if o.nominated != nil {
		o.withNominated(r, o.nominated, func() { all = o.blockersNow(r) })
	}
	if len(all) == 0 {
		all = o.blockersNow(r)
	}
	return all
}

// blockersNow runs every filter on one row of the table as it stands.
func (o *Outcome) blockersNow(r table.Row) []decision.Blocker {
	var all []decision.Blocker
	for k := range o.view.filters {
		f := &o.view.filters[k]
		if v := f.verdictAt(r); v != framework.Fits {
			all = append(all, o.explain(blockKey{f.place, v}, r))
		}
	}
	if len(all) == 0 && o.review != nil && !o.review.passes(r) {
		all = append(all, o.review.blocker(r))
	}
	return all
}

func (o *Outcome) scores(r table.Row) (total int64, scores []decision.Score) {
	if o.view.failed != nil || o.Rejected != nil {
		return 0, nil
	}
	if o.extremes == nil {
		o.measure()
	}
	for k := range o.view.scorers {
		s := &o.view.scorers[k]
		score := s.normal(s.ask(r), o.extremes[k])
		scores = append(scores, decision.Score{Plugin: s.Name, Score: score, Weight: s.weight})
		total += s.weight * score
	}
	if o.review != nil {
		scores, total = append(scores, o.review.scores[r]...), total+o.review.bonus[r]
	}
	return total, scores
}

// Rows is for framework.PostFilterCall.
func (o *Outcome) Rows() []table.Row { return o.rows }

package engine

import (
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// Tallies counts the infeasible nodes by their first blocker, in the profile's plugin order, then
// by verdict; nodes that PreFilter or extenders left out come last. The counts add up to the nodes
// that are not feasible. The result is computed once; callers may append to it but not write its
// elements.
func (o *Outcome) Tallies() []decision.Tally {
	if o.tallies == nil {
		o.tallies = o.tally()
	}
	return slices.Clip(o.tallies)
}

// tally computes the result of Tallies.
func (o *Outcome) tally() []decision.Tally {
	if o.work.pre.rejected != nil {
		return o.allByPreFilter()
	}
	o.work.tryNominatedOthers()
	counts := causeCounts{}
	if o.work.narrowed == nil && len(o.work.view.hostedFilters) == 0 {
		o.recount(&counts)
	} else {
		o.countCauses(&counts)
	}
	tallies := make([]decision.Tally, 0, len(counts.list)+1)
	for _, k := range counts.sorted() {
		tallies = append(tallies, decision.Tally{Blocker: o.work.view.explain(o.work.pod, k.Cause, k.first), Nodes: k.nodes})
	}
	if rest := o.work.nodes() - len(o.work.narrowed); o.work.pre.narrowed != nil && rest > 0 {
		tallies = append(tallies, decision.Tally{Blocker: o.work.leftOut(), Nodes: rest})
	}
	if o.work.extenders != nil {
		tallies = append(tallies, o.extenderTallies()...)
	}
	return tallies
}

// recount adds the number of rejected nodes for each cause. It takes the counts of the
// index and of partitions, without a look at each row, and corrects them where cell
// filters or nominated pods change a row's cause.
func (o *Outcome) recount(counts *causeCounts) {
	x := o.work.view.index
	x.Count()
	o.work.view.eachClosed(o.work.engine.cache.store.Live(o.work.engine.table), func(c ranking.Cause, rows table.RowSet) {
		counts.add(c, rows.Len(), rows.First())
	})
	x.Rejections(func(c ranking.Cause, rows int, first table.Row) { counts.add(c, rows, first) })
	recount := func(r table.Row, was, now ranking.Cause) {
		if was.Rejects() {
			counts.add(was, -1, r)
		}
		counts.add(now, 1, r)
	}
	if o.work.askCells(); len(o.work.view.cellFilters) > 0 {
		for _, r := range o.work.askedCells {
			was := x.Cause(r)
			if now := o.work.causeOnCells(r, was); now != was {
				recount(r, was, now)
			}
		}
	}
	for r, c := range o.work.nominated.blocked { // any order: adds up
		recount(r, o.work.causeOnCells(r, o.work.view.cause(r)), c)
	}
	for r, c := range o.work.nominated.others { // any order: adds up
		recount(r, o.work.causeOnCells(r, o.work.view.cause(r)), c)
	}
}

// countCauses counts the considered rows by the first filter that rejects them, one by one.
// It is for narrowed pods and hosted filters.
func (o *Outcome) countCauses(counts *causeCounts) {
	o.work.askCells()
	for i, n := 0, o.work.candidates(); i < n; i++ {
		r := o.work.candidate(i)
		if k := o.work.causeAt(r); k.Rejects() {
			counts.add(k, 1, r)
		}
	}
}

// allByPreFilter returns the reasons for a pod that PreFilter or RejectPod rejected: one tally that
// counts all nodes.
func (o *Outcome) allByPreFilter() []decision.Tally {
	s := o.work.pre.rejected
	return []decision.Tally{{
		Blocker: decision.Blocker{Plugin: s.Plugin, Code: s.Code, Reasons: s.Reasons},
		Nodes:   o.work.nodes(),
	}}
}

// RejectedBy returns the names of the plugins that rejected some node or the pod as a whole,
// sorted, each once. A plugin whose PreFilter narrowed the pod to some nodes is among them.
func (o *Outcome) RejectedBy() []string {
	names := slices.Clone(o.work.pre.narrowedBy)
	for _, t := range o.Tallies() {
		names = append(names, t.Plugin)
	}
	if s := o.work.pre.rejected; s != nil {
		names = append(names, s.Plugin)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Code returns how the row's node was rejected: Unschedulable if removing pods may help,
// UnschedulableAndUnresolvable if it cannot (also for a row without a node), Error if a plugin
// failed, Success if the node is feasible.
func (o *Outcome) Code(r table.Row) decision.Code {
	if o.work.engine.table.Node(r) == nil { // pods are bound to a node that is gone
		return decision.UnschedulableAndUnresolvable
	}
	if s := o.work.pre.rejected; s != nil {
		return s.Code
	}
	if !o.work.isCandidate(r) {
		return decision.UnschedulableAndUnresolvable
	}
	o.work.tryNominatedOthers()
	o.work.askCells()
	k := o.work.causeAt(r)
	switch k.Filter {
	case ranking.Feasible:
		if o.work.extenders != nil && !o.work.extenders.passes(r) {
			return o.work.extenders.blocker(r).Code
		}
		return decision.Success
	case noNode:
		return decision.UnschedulableAndUnresolvable
	}
	return o.codes.of(k, func() decision.Code { return o.work.view.explain(o.work.pod, k, r).Code })
}

// byCause maps causes to values. The first few are searched linearly, which is faster than
// a map.
type byCause[T any] struct {
	few  []ofCause[T]
	more map[ranking.Cause]T
}

// ofCause is an entry of byCause.
type ofCause[T any] struct {
	ranking.Cause
	is T
}

// of returns the value for the cause k. The first time it calls findOut and keeps the result, so
// that a reason is made once for all rows with that cause.
func (c *byCause[T]) of(k ranking.Cause, findOut func() T) T {
	for i := range c.few {
		if c.few[i].Cause == k {
			return c.few[i].is
		}
	}
	is, known := c.more[k]
	switch {
	case known:
		return is
	case len(c.few) < 16:
		is = findOut()
		c.few = append(c.few, ofCause[T]{k, is})
		return is
	case c.more == nil:
		c.more = map[ranking.Cause]T{}
	}
	c.more[k] = findOut()
	return c.more[k]
}

// Nodes returns the full answer for every node, or every node of the pod group's placement,
// sorted by name: all blockers of an infeasible node, all scores of a feasible one.
func (o *Outcome) Nodes() []decision.Node {
	o.work.tryNominatedOthers()
	t := o.work.engine.table
	nodes := make([]decision.Node, 0, t.Live())
	for i := range t.Rows() {
		r := table.Row(i)
		if t.Node(r) == nil || !o.work.inPlacement(r) {
			continue
		}
		nodes = append(nodes, o.Node(r))
	}
	slices.SortFunc(nodes, func(a, b decision.Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes
}

// Node returns the full answer for one node: all its blockers if it is infeasible, else its
// scores.
func (o *Outcome) Node(r table.Row) decision.Node {
	n := decision.Node{Name: o.work.engine.table.Name(r)}
	if n.Blockers = o.blockers(r); len(n.Blockers) == 0 {
		n.Feasible = true
		n.Total, n.Scores = o.work.scores(r)
	}
	return n
}

// blockers returns all that blocks the row: first with the nominated pods placed, and if nothing
// does, without. If PreFilter or RejectPod rejected the pod, that is the only blocker. nil means
// feasible.
func (o *Outcome) blockers(r table.Row) []decision.Blocker {
	if s := o.work.pre.rejected; s != nil {
		return []decision.Blocker{{Plugin: s.Plugin, Code: s.Code, Reasons: s.Reasons}}
	}
	if !o.work.isCandidate(r) {
		return []decision.Blocker{o.work.leftOut()}
	}
	var all []decision.Blocker
	o.work.withNominated(r, o.work.nominated.Nominator, func() { all = o.blockersNow(r) })
	if len(all) == 0 {
		all = o.blockersNow(r)
	}
	return all
}

// blockersNow asks every filter about one row of the table as it is now and returns all
// that reject it; extenders count only if no filter does.
func (o *Outcome) blockersNow(r table.Row) []decision.Blocker {
	var all []decision.Blocker
	for k := range o.work.view.filters {
		f := &o.work.view.filters[k]
		if f.skip {
			continue
		}
		if v := f.verdictAt(r); v != framework.Fits {
			all = append(all, o.work.view.explain(o.work.pod, ranking.Cause{Filter: f.position, Verdict: uint64(v)}, r))
		}
	}
	if len(all) == 0 && o.work.extenders != nil && !o.work.extenders.passes(r) {
		all = append(all, o.work.extenders.blocker(r))
	}
	return all
}

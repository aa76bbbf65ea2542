package engine

import (
	"math"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// What follows is for framework.PostFilterCall.

// Rows returns the only rows that the decision considered, ascending, where PreFilter or a
// placement narrows the pod to some; nil means all. The caller may not write it.
func (o *Outcome) Rows() []table.Row { return o.work.narrowed }

// Unschedulable returns the number of nodes that were rejected with Code Unschedulable, so
// that removing pods may help.
func (o *Outcome) Unschedulable() (nodes int) {
	for _, t := range o.Tallies() {
		if t.Code == decision.Unschedulable {
			nodes += t.Nodes
		}
	}
	return nodes
}

// Refit asks RejectPod, and then the filters about one row of the table as it is now
// (preemption has taken victims off). It returns the first blocker, nil if the pod fits.
func (o *Outcome) Refit(r table.Row, nominated Nominator) *decision.Blocker {
	if s := o.work.rejection(nominated); s != nil {
		return &decision.Blocker{Plugin: s.Plugin, Code: s.Code, Reasons: s.Reasons}
	}
	return o.refilter(r, nominated)
}

// refilter asks the filters about one row of the table as it is now: first with the pods
// placed that are nominated there and count against the pod, then without. It returns the
// first blocker; nil if the pod fits both times.
func (o *Outcome) refilter(r table.Row, nominated Nominator) *decision.Blocker {
	var found *decision.Blocker
	run := func() {
		if c := firstCause(o.work.view.filters, r); c.Rejects() {
			out := o.work.view.explain(o.work.pod, c, r)
			found = &out
		}
	}
	o.work.withNominated(r, nominated, run)
	if found == nil {
		run()
	}
	return found
}

// AsksHosted reports whether hosted (out-of-tree) plugins filter nodes for the pod.
func (o *Outcome) AsksHosted() bool { return len(o.work.view.hostedFilters) > 0 }

// RefitWithoutLower returns the blocker of the row if all pods of lower priority except kept left
// it, nil if the pod would fit then, with and without the nominated pods. Nothing is placed. The
// second result is false if only a trial placement can tell, or the pod was rejected as a whole or
// may not use the row. Callers may not write the blocker, which is shared by rows with the same
// cause.
func (o *Outcome) RefitWithoutLower(r table.Row, kept []*object.Pod, nominated Nominator) (*decision.Blocker, bool) {
	if o.work.pre.rejected != nil || !o.work.isCandidate(r) {
		return nil, false
	}
	if came := o.work.countedOn(r, nominated); len(came) > 0 {
		if c, known := o.work.causeExchanged(r, o.work.pod.Priority, append(slices.Clip(came), kept...)); !known || c.Rejects() {
			return o.blockerKnown(c, r, known)
		}
	}
	c, known := o.work.causeExchanged(r, o.work.pod.Priority, kept)
	return o.blockerKnown(c, r, known)
}

// blockerKnown returns the blocker for the cause, nil if the cause rejects nothing. The second
// result is false if known is false or the cause is a filter's error.
func (o *Outcome) blockerKnown(c ranking.Cause, r table.Row, known bool) (*decision.Blocker, bool) {
	switch {
	case !known || c.Rejects() && o.work.view.isFailure(c):
		return nil, false
	case c.Rejects():
		return o.blockerOf(c, r), true
	}
	return nil, true
}

// blockerOf returns the blocker for the cause. It is made once for a cause, from the first
// row r, and shared by all rows with the same cause.
func (o *Outcome) blockerOf(c ranking.Cause, r table.Row) *decision.Blocker {
	return o.explained.of(c, func() *decision.Blocker {
		b := o.work.view.explain(o.work.pod, c, r)
		return &b
	})
}

// Local reports whether each filter's verdict on a node depends on that node and its pods alone, no
// filter can fail, and no RejectPod depends on other pods. Preemption may then keep what it found
// for a node.
func (o *Outcome) Local() bool { return o.LocalFilters() && !o.work.depends() }

// LocalFilters reports whether each filter's verdict on a node depends on that node and its pods
// alone and no filter can fail. Unlike Local it does not look at RejectPod.
func (o *Outcome) LocalFilters() bool { return o.work.view.local() }

// local reports whether each filter's verdict on a row depends on that row alone: there
// are no cell filters, hosted filters, or filters that can fail. Then results of trials on
// one row can be kept when other rows change.
func (v *view) local() bool {
	return !v.fallible && len(v.hostedFilters) == 0 && !slices.ContainsFunc(v.filters, func(f filter) bool { return f.CellFilter != nil })
}

// Shortfall appends to amounts, for each resource sum that the filters compare (CPU, memory, number
// of pods, ...), by how much the pod exceeds what is free on the row; 0 or less if it fits.
func (o *Outcome) Shortfall(r table.Row, amounts []int64) []int64 {
	o.eachSum(func(s *sums.Sum) { amounts = append(amounts, s.Lacking(o.work.engine.table, r)) })
	return amounts
}

// Frees appends to amounts, for each sum of Shortfall and in its order, how much the pod p would
// free.
func (o *Outcome) Frees(p *object.Pod, amounts []int64) []int64 {
	o.eachSum(func(s *sums.Sum) { amounts = append(amounts, s.UsedBy(p)) })
	return amounts
}

// Sums returns the resource sums that the filters compare, those of Shortfall.
func (o *Outcome) Sums() (list []sums.Sum) {
	o.eachSum(func(s *sums.Sum) { list = append(list, *s) })
	return list
}

// OnePerRow reports whether a filter keeps two pods like the decided one off the same node.
func (o *Outcome) OnePerRow() bool {
	return slices.ContainsFunc(o.work.view.filters, func(f filter) bool { return f.in.Conflicts != nil && f.in.Conflicts(o.work.pod) })
}

// HoldsAny is what Holds returns where it knows no bound: more pods than a node can have.
const HoldsAny = math.MaxInt32

// Holds returns an upper bound on how many more pods equal to the decided one fit on row r, from
// their resource requests and from whether two may be on one node. HoldsAny means no bound. It is
// 0 if the filters reject r, as long as each of them looks at r alone.
func (o *Outcome) Holds(r table.Row) int {
	if o.Rejected == nil && o.LocalFilters() && o.Code(r) != decision.Success {
		return 0
	}
	n, _ := o.work.repeats(r, nil, HoldsAny)
	return n
}

// eachSum calls visit for each resource sum of the filters, always in the same order.
func (o *Outcome) eachSum(visit func(*sums.Sum)) {
	for k := range o.work.view.filters {
		list := o.work.view.filters[k].in.Sums
		for i := range list {
			visit(&list[i])
		}
	}
}

// keptRows bounds the memory of what PostFilter plugins keep from one decision on a class
// to the next (see Outcome.Kept), counted in rows of the views that they keep it with;
// about 100 bytes a row.
const keptRows = 1 << 19

// Kept returns a variable in which the named PostFilter plugin may keep something from one decision
// on the class to the next, such as how nodes rank for preemption. It lasts as long as the class's
// view, at most. It returns nil if the view is not kept or on trial, or RejectPod depends on other
// pods.
func (o *Outcome) Kept(plugin string) *any {
	v, c := o.work.view, &o.work.engine.cache
	if v.class == nil || v.onTrial || o.work.depends() || c.views[v.class.Signature] != v {
		return nil
	}
	if v.kept == nil {
		v.kept = map[string]*any{}
		c.boundKept(v)
	}
	if v.kept[plugin] == nil {
		v.kept[plugin] = new(any)
	}
	return v.kept[plugin]
}

// boundKept records that PostFilter plugins keep something with the view. It drops what
// they keep with the oldest such view if the views are too many.
func (c *cache) boundKept(v *view) {
	c.withKept = append(c.withKept, v)
	if most := max(1, keptRows/max(1, c.table.Rows())); len(c.withKept) > most {
		c.withKept[0].kept = nil
		c.withKept = slices.Delete(c.withKept, 0, 1)
	}
}

// AppendUnschedulable appends the rows that were rejected with Code Unschedulable, on which
// preemption may help, ascending.
func (o *Outcome) AppendUnschedulable(rows []table.Row) []table.Row {
	if o.work.pre.rejected != nil || o.work.narrowed != nil || o.work.extenders != nil || len(o.work.view.hostedFilters) > 0 {
		for _, r := range o.work.engine.table.All() {
			if o.Code(r) == decision.Unschedulable {
				rows = append(rows, r)
			}
		}
		return rows
	}
	o.work.tryNominatedOthers()
	o.work.askCells()
	is := func(c ranking.Cause, r table.Row) bool {
		return c.Rejects() && o.codes.of(c, func() decision.Code { return o.work.view.explain(o.work.pod, c, r).Code }) == decision.Unschedulable
	}
	index, set := o.work.view.index, make(table.RowSet, (o.work.engine.table.Rows()+63)/64)
	index.AddRejected(set, is)
	o.work.view.eachClosed(o.work.engine.cache.store.Live(o.work.engine.table), func(c ranking.Cause, rows table.RowSet) {
		if !is(c, rows.First()) {
			return
		}
		for w, word := range rows {
			set[w] |= word
		}
	})
	if o.work.cellVerdicts != nil {
		for _, r := range o.work.askedCells {
			set.Set(r, is(o.work.causeOnCells(r, index.Cause(r)), r))
		}
	}
	for _, r := range o.work.nominated.changed(o.work.engine.table.Rows()).Append(nil) {
		set.Set(r, is(o.work.causeAt(r), r))
	}
	return set.Append(rows)
}

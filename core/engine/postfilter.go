package engine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// What follows is for framework.PostFilterCall.

// Rows returns the only ones that the pod was narrowed to; nil: it was not.
func (o *Outcome) Rows() []table.Row { return o.work.narrowed }

// Unschedulable returns the number of nodes with that Code.
func (o *Outcome) Unschedulable() (nodes int) {
	for _, t := range o.Tallies() {
		if t.Code == decision.Unschedulable {
			nodes += t.Nodes
		}
	}
	return nodes
}

// Refit runs the filters on one row of the table as it stands now, first with the
// pods placed that are nominated there and count against the pod, then without; nil
// when it fits both times.
func (o *Outcome) Refit(r table.Row, nominated Nominator) *decision.Blocker {
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

// AsksHosted reports whether hosted plugins filter nodes for the pod.
func (o *Outcome) AsksHosted() bool { return len(o.work.view.hostedFilters) > 0 }

// RefitWithoutLower returns the blocker of the row if the pods of lower priority left it,
// nil if the pod would fit. It places nothing, and returns false if only a trial
// placement can tell.
func (o *Outcome) RefitWithoutLower(r table.Row, nominated Nominator) (*decision.Blocker, bool) {
	if o.work.pre.rejected != nil || !o.work.isCandidate(r) {
		return nil, false
	}
	if came := o.work.countedOn(r, nominated); len(came) > 0 {
		if c, known := o.work.causeExchanged(r, o.work.pod.Priority, came); !known || c.Rejects() {
			return o.blockerKnown(c, r, known)
		}
	}
	c, known := o.work.causeExchanged(r, o.work.pod.Priority, nil)
	return o.blockerKnown(c, r, known)
}

// blockerKnown returns the blocker for the cause, nil where it rejects nothing; false where the
// cause is not known, or is a failure.
func (o *Outcome) blockerKnown(c ranking.Cause, r table.Row, known bool) (*decision.Blocker, bool) {
	switch {
	case !known || c.Rejects() && o.work.view.isFailure(c):
		return nil, false
	case c.Rejects():
		return o.blockerOf(c, r), true
	}
	return nil, true
}

// blockerOf explains the cause, for all rows that have it.
func (o *Outcome) blockerOf(c ranking.Cause, r table.Row) *decision.Blocker {
	return o.explained.of(c, func() *decision.Blocker {
		b := o.work.view.explain(o.work.pod, c, r)
		return &b
	})
}

// Local reports whether every filter of the class decides by the row alone, and none can
// fail.
func (o *Outcome) Local() bool { return o.work.view.local() }

func (v *view) local() bool {
	return !v.fallible && len(v.hostedFilters) == 0 && !slices.ContainsFunc(v.filters, func(f filter) bool { return f.CellFilter != nil })
}

// Shortfall appends how much the pod lacks on the row, for each sum that filters compare.
func (o *Outcome) Shortfall(r table.Row, amounts []int64) []int64 {
	o.eachSum(func(s *sums.Sum) { amounts = append(amounts, s.Lacking(o.work.engine.table, r)) })
	return amounts
}

// Frees appends how much of each amount of Shortfall another pod uses.
func (o *Outcome) Frees(p *object.Pod, amounts []int64) []int64 {
	o.eachSum(func(s *sums.Sum) { amounts = append(amounts, s.UsedBy(p)) })
	return amounts
}

func (o *Outcome) eachSum(visit func(*sums.Sum)) {
	for k := range o.work.view.filters {
		list := o.work.view.filters[k].in.Sums
		for i := range list {
			visit(&list[i])
		}
	}
}

// keptRows bounds the rows of all views for which plugins keep something: about
// 100 bytes a row.
const keptRows = 1 << 19

// Kept returns where the plugin keeps something for as long as the class's view lasts; nil
// where the view is not kept.
func (o *Outcome) Kept(plugin string) *any {
	v, c := o.work.view, &o.work.engine.cache
	if v.class == nil || v.onTrial || c.views[v.class.Signature] != v {
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

// boundKept adds the view to those for which PostFilter plugins keep something, and drops
// what is kept for the oldest if they are too many.
func (c *cache) boundKept(v *view) {
	c.withKept = append(c.withKept, v)
	if most := max(1, keptRows/max(1, c.table.Rows())); len(c.withKept) > most {
		c.withKept[0].kept = nil
		c.withKept = slices.Delete(c.withKept, 0, 1)
	}
}

// AppendUnschedulable appends the rows whose Code is Unschedulable, in order.
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

package engine

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// NewPlain returns an engine with its views off: it keeps nothing, and for
// each pod asks every plugin about every node afresh, one by one. It is slow,
// and answers as New's does; that it does is what it is there to show.
func NewPlain(t *table.Table, seed uint64) *Engine {
	e := New(t, seed, 1)
	e.plain = true
	return e
}

// decidePlainly is decide without views.
func (e *Engine) decidePlainly(p *profile.Profile, pod *object.Pod, nominated Nominations, r *review) *Outcome {
	v := prepare(e.table, newReading(p), pod, "")
	o := &Outcome{engine: e, view: v, pod: pod, Row: -1, Rejected: v.class.rejected, review: r}
	if o.Rejected != nil {
		return o
	}
	o.nominated = nominated
	if v.class.narrowed != nil {
		o.rows = e.rowsOf(v.class.narrowed)
	}
	v.askFilters(e.table)
	v.askScorers(e.table)
	if row, ok := e.ownNomination(o); ok {
		o.Row, o.Feasible = row, 1
		return o
	}
	o.considerNominated()
	if o.Rejected = o.failure(); o.Rejected != nil {
		return o
	}
	if o.Feasible = len(o.feasibleRows()); o.Feasible > 0 {
		o.pickPlainly()
	}
	return o
}

// askFilters fills in each row's first blocker. Filters by cells are asked
// like any other, about the row alone.
func (v *view) askFilters(t *table.Table) {
	v.divide()
	v.sync() // before anything is tried
	v.cellFilters = nil
	v.scatter() // there are no groups, and totals are added up below
	v.standings.size(t.Rows())
	for _, r := range t.All() {
		if t.Node(r) == nil {
			continue
		}
		at := standing(0)
		if b, rejected := firstBlock(v.filters, r); rejected {
			at = because(v.causes.id(blockKey(b)))
		}
		v.join(r, at)
		v.at[r] = at
	}
}

// askScorers fills in each row's raw scores, or the cells that stand for them.
func (v *view) askScorers(t *table.Table) {
	for k := range v.scorers {
		s, column := &v.scorers[k], make([]int64, t.Rows())
		for r := range table.Row(t.Rows()) {
			switch {
			case t.Node(r) == nil:
			case s.cells != nil:
				column[r] = s.cells.cell(r)
			default:
				column[r] = s.ask(r)
			}
		}
		if s.cells != nil {
			s.cells.at = column
		} else {
			s.raw = func() []int64 { return column }
		}
	}
}

// pickPlainly adds up the scores of every feasible row.
func (o *Outcome) pickPlainly() {
	rows := o.feasibleRows()
	if len(rows) == 1 {
		o.Row = rows[0]
		return
	}
	if o.Rejected = o.view.failed; o.Rejected != nil {
		return
	}
	totals := map[table.Row]int64{}
	for i, r := range rows {
		total, scores := o.scores(r)
		if o.Rejected = invalid(scores[:len(o.view.scorers)]); o.Rejected != nil {
			o.Score, o.Ties = 0, 0
			return
		}
		if totals[r] = total; i == 0 || total > o.Score {
			o.Score, o.Ties = total, 0
		}
		if total == o.Score {
			o.Ties++
		}
	}
	tied := func(r table.Row) bool { total, fits := totals[r]; return fits && total == o.Score }
	o.draw(tied, func(f func(table.Row)) {
		for _, r := range rows {
			if tied(r) {
				f(r)
			}
		}
	})
}

// invalid reports a score that is out of range, nil where there is none.
func invalid(scores []decision.Score) *decision.Status {
	for _, s := range scores {
		if s.Score < 0 || s.Score > maxScore {
			return outOfRange(s.Plugin, s.Score)
		}
	}
	return nil
}

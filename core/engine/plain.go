package engine

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// decidePlainly chooses a node without any view: it asks every plugin about every node,
// one by one. NewPlain's engines decide this way, for tests.
func (e *Engine) decidePlainly(r *Request, nominated Nominator, rv *extenderResults, placement []table.Row) *Outcome {
	v := prepare(e.table, newKeys(r.Profile), r.Pod)
	o := &Outcome{engine: e, view: v, pod: r.Pod, Row: -1, extenders: rv, placement: placement}
	if o.preFilterHosted(r); o.Rejected != nil {
		return o
	}
	o.nominated.Nominator = nominated
	if o.pre.narrowed != nil {
		o.narrowed = e.rowsOf(o.pre.narrowed)
	}
	o.keepWithin()
	v.askFilters(e.table)
	v.askScorers(e.table)
	if r.Pod.NominatedNode != "" && o.takeOwnNomination() {
		return o
	}
	o.tryNominated()
	if o.Rejected = o.failure(); o.Rejected != nil {
		return o
	}
	if o.Feasible = len(o.feasibleRows()); o.Feasible > 0 {
		o.choosePlainly()
	}
	return o
}

// askFilters finds the cause of each row, one by one. Cell filters are asked by row like
// any other.
func (v *view) askFilters(t *table.Table) {
	v.syncCells() // before anything is tried
	v.fallible = v.fallible || len(v.hostedFilters) > 0
	v.cellFilters, v.hostedFilters = nil, nil
	for k := range v.scorers {
		v.scorers[k].column = column{kept: true, at: k}
	}
	v.index = ranking.New(ranking.Shape{Own: len(v.scorers)}, nil)
	v.index.Resize(t.Rows())
	v.index.Reset(nil)
	found := ranking.Answers{Filter: make([]int16, t.Rows()), Verdict: make([]uint64, t.Rows()), Score: make([]int64, t.Rows())}
	for i, r := range t.All() {
		c := ranking.Cause{Filter: ranking.NoNode}
		if t.Node(r) != nil {
			c = firstCause(v.filters, r)
		}
		found.Filter[i], found.Verdict[i] = c.Filter, c.Verdict
	}
	v.index.Update(t.All(), &found)
	v.index.Count()
}

// askScorers writes the raw scores of each row, except those of scorers by cells.
func (v *view) askScorers(t *table.Table) {
	for k := range v.scorers {
		s, column := &v.scorers[k], v.index.Column(k)
		for _, r := range t.All() {
			switch {
			case t.Node(r) == nil || s.cells != nil:
			default:
				column[r] = s.scoreAt(r)
			}
		}
	}
}

// choosePlainly adds up the scores of every feasible row.
func (o *Outcome) choosePlainly() {
	rows := o.feasibleRows()
	if len(rows) == 1 {
		o.Row = rows[0]
		return
	}
	if o.Rejected = o.view.failed; o.Rejected != nil {
		return
	}
	if !o.scoreHosted() {
		return
	}
	totals, tied := map[table.Row]int64{}, []table.Row{}
	for i, r := range rows {
		total, scores := o.scores(r)
		if o.Rejected = invalid(scores[:len(o.view.scorers)]); o.Rejected != nil {
			o.Score, o.Ties = 0, 0
			return
		}
		if totals[r] = total; i == 0 || total > o.Score {
			o.Score, tied = total, tied[:0]
		}
		if total == o.Score {
			tied = append(tied, r)
		}
	}
	o.Ties = len(tied)
	o.draw(tied, func(r table.Row) bool { total, fits := totals[r]; return fits && total == o.Score })
}

// invalid returns a status for the first score that is out of range, nil if there is
// none.
func invalid(scores []decision.Score) *decision.Status {
	for _, s := range scores {
		if s.Score < 0 || s.Score > maxScore {
			return invalidScore(s.Plugin, s.Score)
		}
	}
	return nil
}

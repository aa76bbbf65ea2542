package engine

import (
	"math"

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
	v.askAll(e.table)
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

// askAll finds the cause and the raw scores of each row, one by one, except those of
// scorers by cells. Cell filters are asked by row like any other.
func (v *view) askAll(t *table.Table) {
	v.syncCells() // before anything is tried
	v.fallible = v.fallible || len(v.hostedFilters) > 0
	v.cellFilters, v.hostedFilters = nil, nil
	for k := range v.scorers {
		v.scorers[k].column = column{kept: true, at: k}
	}
	v.index = &ranking.Index{}
	v.index.Begin(ranking.Shape{Values: len(v.scorers), Highest: math.MaxInt64}, t.Rows())
	for _, r := range t.All() {
		if t.Node(r) == nil {
			continue
		}
		c := firstCause(v.filters, r)
		found := ranking.Answers{Filter: []int16{c.Filter}, Verdict: []uint64{c.Verdict}, Score: []int64{0}}
		for k := range v.scorers {
			raw := []int64{0}
			if s := &v.scorers[k]; s.cells == nil {
				raw[0] = s.scoreAt(r)
			}
			found.Values = append(found.Values, raw)
		}
		v.index.Update(one(t, r), &found)
	}
	v.index.Count()
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

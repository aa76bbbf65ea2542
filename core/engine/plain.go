package engine

import (
	"math"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// decidePlainly makes the decision without any view: it asks every plugin about every node,
// one by one. It sets the Choice. Engines of NewPlain decide this way, for tests.
func (d *decider) decidePlainly(r *Request, nominated Nominator) {
	d.preFilterHosted(r)
	if d.rejectWhole(nominated); d.Rejected != nil {
		return
	}
	d.nominated.Nominator = nominated
	d.keepWithin()
	d.setNominated(nominated)
	d.view.askAll(d.engine.table)
	if own, feasible := d.feasibleOwn(); feasible {
		d.Row, d.Feasible = own, 1
		return
	}
	d.tryNominated()
	if d.Rejected = d.failure(); d.Rejected != nil {
		return
	}
	if d.Feasible = len(d.feasibleRows()); d.Feasible > 0 {
		d.choosePlainly()
	}
}

// askAll asks every plugin about each row, one by one, and puts the first cause and the raw
// scores into a new index. Raw scores of scorers by cells are left out. Cell and hosted
// filters are asked by row like any other, and cellFilters and hostedFilters are nil
// afterwards.
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

// choosePlainly adds up the scores of every feasible row and chooses the best, with the same draw
// between ties as engines with views. Rejected is set if a scorer or a PreScore fails or a score is
// out of range.
func (d *decider) choosePlainly() {
	rows := d.feasibleRows()
	if len(rows) == 1 {
		d.Row = rows[0]
		return
	}
	if d.Rejected = d.view.failed; d.Rejected != nil {
		return
	}
	if !d.scoreHosted() {
		return
	}
	totals, tied := map[table.Row]int64{}, []table.Row{}
	for i, r := range rows {
		total, scores := d.scores(r)
		if d.Rejected = invalid(scores[:len(d.view.scorers)]); d.Rejected != nil {
			d.Score, d.Ties = 0, 0
			return
		}
		if totals[r] = total; i == 0 || total > d.Score {
			d.Score, tied = total, tied[:0]
		}
		if total == d.Score {
			tied = append(tied, r)
		}
	}
	d.Ties = len(tied)
	d.draw(tied, func(r table.Row) bool { total, fits := totals[r]; return fits && total == d.Score })
}

// invalid returns an Error status for the first score outside of 0 to 100, nil if there is
// none.
func invalid(scores []decision.Score) *decision.Status {
	for _, s := range scores {
		if s.Score < 0 || s.Score > maxScore {
			return invalidScore(s.Plugin, s.Score)
		}
	}
	return nil
}

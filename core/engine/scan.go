package engine

import (
	"math"
	"slices"

	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
)

// scan chooses among all feasible rows one by one. It is the way where the index has no
// groups, or something besides the view rules out single rows.
func (o *Outcome) scan() {
	rows := o.feasibleRows()
	raws := o.findExtremes()
	totals := o.engine.rawBuffers.next(len(rows))
	for i, r := range rows {
		totals[i] = o.view.index.Score(r) + o.hostedBonus(r)
	}
	if o.extenders != nil {
		for i, r := range rows {
			totals[i] += o.extenders.bonus[r]
		}
	}
	base := o.addToTotals(totals, raws)
	if o.Rejected != nil { // a score out of range
		return
	}
	best, tied := int64(math.MinInt64), o.engine.tied[:0]
	for i, sum := range totals {
		switch {
		case sum > best:
			best, tied = sum, append(tied[:0], rows[i])
		case sum == best:
			tied = append(tied, rows[i])
		}
	}
	o.engine.tied = tied
	if o.Row, o.Score, o.Ties = tied[0], base+best, len(tied); o.Ties > 1 {
		o.draw(tied, func(r table.Row) bool { _, is := slices.BinarySearch(tied, r); return is })
	}
}

// draw chooses one of the tied rows.
func (o *Outcome) draw(tied []table.Row, isTied func(table.Row) bool) {
	o.Row = draw.Row(o.drawSeed(), len(tied), draw.Rows{
		Candidates: o.candidates(),
		Candidate:  o.candidate,
		Tied:       isTied,
		Each: func(f func(table.Row)) {
			for _, r := range tied {
				f(r)
			}
		},
	})
}

// findExtremes finds the raw scores of each scorer that is normalised or answers by
// cells, in the order of the feasible rows, and their extremes.
func (o *Outcome) findExtremes() (raws [][]int64) {
	o.weighRows()
	o.extremes = o.engine.extremesBuffer(len(o.view.scorers))
	raws = resize(o.engine.rawColumns, len(o.view.scorers))
	clear(raws)
	o.engine.rawColumns = raws
	o.engine.rawBuffers.begin()
	for k := range o.view.scorers {
		s := &o.view.scorers[k]
		if s.cells == nil && !s.column.kept {
			continue
		}
		e := noExtremes
		raws[k] = o.rawScores(s)
		for _, raw := range raws[k] {
			e.add(raw)
		}
		o.extremes[k] = e
	}
	return raws
}

// rawScores returns the scorer's raw scores of the feasible rows, in their order.
func (o *Outcome) rawScores(s *scorer) []int64 {
	rows := o.feasibleRows()
	scores := o.engine.rawBuffers.next(len(rows))
	if s.cells != nil {
		s.CellScore.AskRows(&s.in, rows, scores)
		return scores
	}
	if s.said != nil {
		s.said.Write(rows, scores)
		return scores
	}
	for i, r := range rows {
		scores[i] = o.view.index.Value(r, s.column.at)
	}
	return scores
}

// columnBuffers lends scratch columns for one decision. begin takes them all back.
type columnBuffers struct {
	columns [][]int64
	used    int
}

func (c *columnBuffers) begin() { c.used = 0 }

// next returns a column of n entries with undefined content.
func (c *columnBuffers) next(n int) []int64 {
	if c.used == len(c.columns) {
		c.columns = append(c.columns, nil)
	}
	column := resize(c.columns[c.used], n)
	c.columns[c.used] = column
	c.used++
	return column
}

// addToTotals adds the weighted, normalised scores to the totals. A score that every row
// gets is not added but returned in base.
func (o *Outcome) addToTotals(totals []int64, raws [][]int64) (base int64) {
	for k, raw := range raws {
		e := o.extremes[k]
		if raw == nil || e.low > e.high {
			continue
		}
		if e.low == e.high && o.view.scorers[k].cells == nil {
			base += o.normalisedScore(k, e.low)
			continue
		}
		if width := e.high - e.low; width >= 0 && width < tableRange {
			o.addTabulated(totals, raw, k)
			continue
		}
		for i, score := range raw {
			totals[i] += o.normalisedScore(k, score)
		}
	}
	return base
}

// tableRange is the widest range of raw scores that is tabulated.
const tableRange = 1024

// notAsked marks a raw score of the table that no row has had so far.
const notAsked = math.MinInt64

// addTabulated adds scores to the totals that are looked up in a table by the raw score.
func (o *Outcome) addTabulated(totals, raw []int64, k int) {
	low := o.extremes[k].low
	normalised := o.engine.rawBuffers.next(int(o.extremes[k].high-low) + 1)
	for i := range normalised {
		normalised[i] = notAsked
	}
	for i, score := range raw {
		if score == framework.NoScore {
			continue
		}
		known := &normalised[score-low]
		if *known == notAsked {
			*known = o.normalisedScore(k, score)
		}
		totals[i] += *known
	}
}

package engine

import (
	"math"

	"github.com/berth-scheduler/berth/core/par"
	"github.com/berth-scheduler/berth/core/table"
)

// extreme is the range of a scorer's raw scores over the feasible rows.
type extreme struct{ low, high int64 }

// pick finds the feasible row with the highest total; among equals the
// smallest lot wins. A single feasible row is taken without scoring.
func (o *Outcome) pick() {
	if o.Feasible == 1 {
		o.eachRow(func(r table.Row) {
			if o.fits(r) {
				o.Row = r
			}
		})
		return
	}
	o.measure()
	norms := o.normalisers()
	if o.Rejected != nil {
		return
	}
	base := o.constant(norms)
	o.Score = math.MinInt64
	t, seed := o.engine.table, o.engine.seed
	var lot uint64
	o.eachRow(func(r table.Row) {
		if !o.fits(r) {
			return
		}
		total := base + o.view.final[r]
		for k := range norms {
			if n := &norms[k]; n.table != nil {
				total += n.table[o.view.scorers[k].raw[r]-o.extremes[k].low]
			} else if n.varies {
				total += n.weighted(o.view.scorers[k].raw[r])
			}
		}
		switch {
		case total > o.Score:
			o.Row, o.Score, o.Ties, lot = r, total, 1, t.Lot(r, seed)
		case total == o.Score:
			o.Ties++
			if l := t.Lot(r, seed); l < lot || (l == lot && t.Name(r) < t.Name(o.Row)) {
				o.Row, lot = r, l
			}
		}
	})
}

// measure finds the extremes of each normalised scorer, in parallel by
// scorer where there are many rows.
func (o *Outcome) measure() {
	o.extremes = make([]extreme, len(o.view.scorers))
	workers := o.engine.workers
	if o.engine.table.Rows() < 4*grain {
		workers = 1
	}
	par.Each(len(o.view.scorers), workers, func(k int) {
		s := &o.view.scorers[k]
		if s.Normalize == nil {
			return
		}
		e := extreme{math.MaxInt64, math.MinInt64}
		o.eachRow(func(r table.Row) {
			if o.fits(r) {
				e.low, e.high = min(e.low, s.raw[r]), max(e.high, s.raw[r])
			}
		})
		o.extremes[k] = e
	})
}

// normaliser maps one scorer's raw scores to weighted, normalised ones: by
// the constant when all are equal, by table when their range is small, else
// by the plugin's function.
type normaliser struct {
	constant int64
	table    []int64
	varies   bool
	weighted func(raw int64) int64
}

// tableRange is the widest range of raw scores that is tabulated.
const tableRange = 1024

func (o *Outcome) normalisers() []normaliser {
	norms := make([]normaliser, len(o.view.scorers))
	for k := range o.view.scorers {
		s, e := &o.view.scorers[k], o.extremes[k]
		if s.Normalize == nil {
			continue
		}
		weighted := func(raw int64) int64 {
			score := s.Normalize(raw, e.low, e.high)
			if score < 0 || score > maxScore {
				o.Rejected = outOfRange(s.Name, score)
			}
			return s.weight * score
		}
		switch width := e.high - e.low; {
		case width == 0:
			norms[k].constant = weighted(e.low)
		case width > 0 && width < tableRange:
			norms[k].table = make([]int64, width+1)
			for i := range norms[k].table {
				norms[k].table[i] = weighted(e.low + int64(i))
			}
		default:
			norms[k].varies, norms[k].weighted = true, weighted
		}
	}
	return norms
}

// constant sums what every row gets alike.
func (o *Outcome) constant(norms []normaliser) int64 {
	var sum int64
	for k := range norms {
		sum += norms[k].constant
	}
	return sum
}

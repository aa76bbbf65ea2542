package engine

import (
	"math"

	"github.com/berth-scheduler/berth/core/table"
)

// pick finds the feasible row with the highest total; among equals the
// smallest lot wins. A single feasible row is taken without scoring.
func (o *Outcome) pick() {
	if o.Feasible == 1 {
		o.eachFeasible(func(r table.Row) { o.Row = r })
		return
	}
	o.extremes = o.measure()
	norms, base := o.normalisers()
	if o.Rejected != nil {
		return
	}
	t, seed := o.engine.table, o.engine.seed
	first, final := o.view.first, o.view.final
	best, lot := int64(math.MinInt64), uint64(0)
	for i, n := 0, o.candidates(); i < n; i++ {
		r := o.candidate(i)
		if first[r] != feasible {
			continue
		}
		total := final[r]
		for k := range norms {
			total += norms[k].of(r)
		}
		if total < best || o.isBlocked(r) {
			continue
		}
		if total > best {
			o.Row, best, o.Ties, lot = r, total, 1, t.Lot(r, seed)
			continue
		}
		o.Ties++
		if l := t.Lot(r, seed); l < lot || (l == lot && t.Name(r) < t.Name(o.Row)) {
			o.Row, lot = r, l
		}
	}
	o.Score = base + best
}

// normaliser maps one scorer's raw scores to weighted, normalised ones: by
// table when their range is small, else by the plugin's function.
type normaliser struct {
	raw      []int64
	low      int64
	table    []int64
	weighted func(raw int64) int64
}

func (n *normaliser) of(r table.Row) int64 {
	if n.table != nil {
		return n.table[n.raw[r]-n.low]
	}
	return n.weighted(n.raw[r])
}

// tableRange is the widest range of raw scores that is tabulated.
const tableRange = 1024

// normalisers returns one for each scorer whose normalised scores differ
// between nodes, and the sum of the others, which every node gets alike.
func (o *Outcome) normalisers() (norms []normaliser, base int64) {
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
		if e.low == e.high {
			base += weighted(e.low)
			continue
		}
		n := normaliser{raw: s.raw, low: e.low, weighted: weighted}
		if width := e.high - e.low; width > 0 && width < tableRange {
			n.table = make([]int64, width+1)
			for i := range n.table {
				n.table[i] = weighted(e.low + int64(i))
			}
		} else {
			o.eachFeasible(func(r table.Row) { weighted(s.raw[r]) }) // checks their range
		}
		norms = append(norms, n)
	}
	return norms, base
}

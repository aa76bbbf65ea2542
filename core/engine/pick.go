package engine

import (
	"math"

	"github.com/berth-scheduler/berth/core/table"
)

// pick finds the feasible row with the highest total; among equals a draw
// decides. A single feasible row is taken without scoring.
func (o *Outcome) pick() {
	v := o.view
	switch {
	case o.Feasible == 1:
		o.eachFeasible(func(r table.Row) { o.Row = r })
	case v.failed != nil:
		o.Rejected = v.failed
	case v.poisoned > 0 && o.findPoison():
	case v.index != nil && o.blocked == nil && o.rows == nil:
		o.read()
	default:
		o.scan()
	}
	if o.Rejected != nil {
		o.Row, o.Score, o.Ties = -1, 0, 0
	}
}

// findPoison reports a feasible row with a score out of range.
func (o *Outcome) findPoison() bool {
	o.eachFeasible(func(r table.Row) {
		if o.view.final[r] >= 0 || o.Rejected != nil {
			return
		}
		for k := range o.view.scorers {
			s := &o.view.scorers[k]
			if score := s.ask(r); s.Normalize == nil && (score < 0 || score > maxScore) {
				o.Rejected = outOfRange(s.Name, score)
				return
			}
		}
	})
	return o.Rejected != nil
}

// ask has the scorer evaluate one row.
func (s *scorer) ask(r table.Row) int64 {
	var out [1]int64
	s.Score(&s.in, one(r), out[:])
	return out[0]
}

// read takes the best row off the index.
func (o *Outcome) read() {
	x := o.view.index
	o.extremes = make([]extremes, len(o.view.scorers))
	for i, k := range x.norms {
		e := extremes{math.MaxInt64, math.MinInt64}
		for g := range x.groups {
			if len(x.groups[g].heap) > 0 {
				e.add(x.groups[g].raws[i])
			}
		}
		o.extremes[k] = e
	}
	best, totals := int64(math.MinInt64), make([]int64, len(x.groups)) // of the groups, but for final scores
	for g := range x.groups {
		group := &x.groups[g]
		if len(group.heap) == 0 {
			continue
		}
		for i, k := range x.norms {
			totals[g] += o.normalised(k, group.raws[i])
		}
		top := group.heap[0]
		switch total := totals[g] + int64(top.final); {
		case total > best:
			best, o.Row, o.Ties = total, top.row, int(group.having[top.final])
		case total == best:
			o.Ties += int(group.having[top.final])
		}
	}
	if o.Score = best; o.Ties == 1 {
		return
	}
	o.draw(func(r table.Row) bool {
		g := x.groupOf[r]
		return g >= 0 && totals[g]+o.view.final[r] == best
	}, func(f func(table.Row)) {
		for g := range x.groups {
			x.groups[g].eachAtTop(0, best-totals[g], f)
		}
	})
}

// scan looks at every candidate.
func (o *Outcome) scan() {
	o.extremes = o.measure()
	norms, base := o.normalisers()
	if o.Rejected != nil {
		return
	}
	first, final := o.view.first, o.view.final
	total := func(r table.Row) int64 {
		sum := final[r]
		for k := range norms {
			sum += norms[k].of(r)
		}
		return sum
	}
	best, tied := int64(math.MinInt64), o.engine.tied[:0]
	for i, n := 0, o.candidates(); i < n; i++ {
		r := o.candidate(i)
		if first[r] != feasible || o.isBlocked(r) {
			continue // its raw score may be beyond the extremes
		}
		switch sum := total(r); {
		case sum > best:
			best, tied = sum, append(tied[:0], r)
		case sum == best:
			tied = append(tied, r)
		}
	}
	o.engine.tied = tied
	if o.Row, o.Score, o.Ties = tied[0], base+best, len(tied); o.Ties == 1 {
		return
	}
	o.draw(func(r table.Row) bool { return o.fits(r) && total(r) == best }, func(f func(table.Row)) {
		for _, r := range tied {
			f(r)
		}
	})
}

// normalised is the scorer's weighted, normalised score for a raw one.
func (o *Outcome) normalised(k int, raw int64) int64 {
	s := &o.view.scorers[k]
	score := s.Normalize(raw, o.extremes[k].low, o.extremes[k].high)
	if score < 0 || score > maxScore {
		o.Rejected = outOfRange(s.Name, score)
	}
	return s.weight * score
}

// extremes are the least and the greatest of some raw scores.
type extremes struct{ low, high int64 }

func (e *extremes) add(raw int64) { e.low, e.high = min(e.low, raw), max(e.high, raw) }

// measure finds the extremes of each normalised scorer over the feasible rows.
func (o *Outcome) measure() []extremes {
	all := make([]extremes, len(o.view.scorers))
	for k := range o.view.scorers {
		if s := &o.view.scorers[k]; s.Normalize != nil {
			raw, e := s.raw(), extremes{math.MaxInt64, math.MinInt64}
			o.eachFeasible(func(r table.Row) { e.add(raw[r]) })
			all[k] = e
		}
	}
	return all
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
		if e.low == e.high {
			base += o.normalised(k, e.low)
			continue
		}
		n := normaliser{raw: s.raw(), low: e.low, weighted: func(raw int64) int64 { return o.normalised(k, raw) }}
		if width := e.high - e.low; width > 0 && width < tableRange {
			n.table = make([]int64, width+1)
			for i := range n.table {
				n.table[i] = n.weighted(e.low + int64(i))
			}
		} else {
			o.eachFeasible(func(r table.Row) { n.weighted(n.raw[r]) }) // checks their range
		}
		norms = append(norms, n)
	}
	return norms, base
}

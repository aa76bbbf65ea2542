package engine

import (
	"math"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
)

// pick finds the feasible row with the highest total; among equals a draw
// decides. A single feasible row is taken without scoring.
func (o *Outcome) pick() {
	v := o.view
	switch {
	case o.Feasible == 1:
		o.Row = o.feasibleRows()[0]
	case v.failed != nil:
		o.Rejected = v.failed
	case v.poisoned > 0 && o.findPoison():
	case o.grouped():
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
	for _, r := range o.feasibleRows() {
		if o.view.score(r) >= 0 {
			continue
		}
		for k := range o.view.scorers {
			s := &o.view.scorers[k]
			if score := s.ask(r); s.NormalizeScore == nil && (score < 0 || score > maxScore) {
				o.Rejected = outOfRange(s.Name, score)
				return true
			}
		}
	}
	return false
}

// ask has the scorer evaluate one row.
func (s *scorer) ask(r table.Row) int64 {
	if s.cells != nil {
		return s.CellScore.Score(&s.in, s.cells.cell(r))
	}
	var out [1]int64
	s.Score(&s.in, one(s.in.Table, r), out[:])
	return out[0]
}

// read takes the best row off the groups.
func (o *Outcome) read() {
	x := &o.view.standings
	o.weighGroups(x)
	o.measureGroups(x)
	x.totals = resize(x.totals, len(x.groups))
	best := int64(math.MinInt64)
	for g := range x.groups {
		group := &x.groups[g]
		if x.totals[g] = 0; !group.fits {
			continue
		}
		for i := range x.parts {
			if p := &x.parts[i]; p.scorer != nil {
				x.totals[g] += o.normalised(p.place, p.raw(x.number(group, p)))
			}
		}
		switch total := x.totals[g] + int64(group.top); {
		case total > best:
			best, o.Ties = total, int(group.having[group.top])
		case total == best:
			o.Ties += int(group.having[group.top])
		}
	}
	o.Score = best
	o.draw(func(r table.Row) bool {
		at := x.at[r]
		return at.feasible() && x.groups[at>>x.bits].fits && x.totals[at>>x.bits]+int64(x.below(at)) == best
	}, func(f func(table.Row)) { x.each(best, f) })
}

// raw is the raw score that stands for the number.
func (p *part) raw(number int64) int64 {
	if p.scorer.cells != nil {
		return p.scorer.CellScore.Score(&p.scorer.in, number)
	}
	return number
}

// measureGroups is measure, read off the groups.
func (o *Outcome) measureGroups(x *standings) {
	o.extremes = o.engine.extremesOf(len(o.view.scorers))
	for i := range x.parts {
		if x.parts[i].scorer == nil {
			continue
		}
		e := noExtremes
		for g := range x.groups {
			if x.groups[g].fits {
				e.add(x.parts[i].raw(x.number(&x.groups[g], &x.parts[i])))
			}
		}
		o.extremes[x.parts[i].place] = e
	}
}

// scan looks at every candidate.
func (o *Outcome) scan() {
	o.measure()
	norms, base := o.normalisers()
	total := func(r table.Row) int64 {
		sum := o.view.score(r)
		for k := range norms {
			sum += norms[k].of(r)
		}
		if o.review != nil {
			sum += o.review.bonus[r]
		}
		return sum
	}
	best, tied := int64(math.MinInt64), o.engine.tied[:0]
	for _, r := range o.feasibleRows() {
		switch sum := total(r); {
		case sum > best:
			best, tied = sum, append(tied[:0], r)
		case sum == best:
			tied = append(tied, r)
		}
	}
	o.engine.tied = tied
	if o.Rejected != nil { // a score out of range
		return
	}
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
	score := s.normal(raw, o.extremes[k])
	if score < 0 || score > maxScore {
		o.Rejected = outOfRange(s.Name, score)
	}
	return s.weight * score
}

// normal is the normalised score for a raw one.
func (s *scorer) normal(raw int64, e extremes) int64 {
	switch {
	case raw == framework.NoScore:
		return 0
	case s.NormalizeScore == nil:
		return raw
	}
	return s.NormalizeScore(raw, e.low, e.high)
}

// extremes are the least and the greatest of some raw scores; NoScore is
// none.
type extremes struct{ low, high int64 }

var noExtremes = extremes{math.MaxInt64, math.MinInt64}

// extremesOf is room for those of n scorers.
func (e *Engine) extremesOf(n int) []extremes {
	e.extremes = resize(e.extremes, n)
	clear(e.extremes)
	return e.extremes
}

func (e *extremes) add(raw int64) {
	if raw != framework.NoScore {
		e.low, e.high = min(e.low, raw), max(e.high, raw)
	}
}

// measure finds the columns and extremes of each scorer that is normalised or
// answers by cells, over the feasible rows.
func (o *Outcome) measure() {
	o.weigh()
	o.extremes = o.engine.extremesOf(len(o.view.scorers))
	o.columns = make([][]int64, len(o.view.scorers))
	for k := range o.view.scorers {
		if s := &o.view.scorers[k]; s.NormalizeScore != nil || s.cells != nil {
			column, e := o.column(s), noExtremes
			for _, r := range o.feasibleRows() {
				e.add(column[r])
			}
			o.columns[k], o.extremes[k] = column, e
		}
	}
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
	if n.raw[r] == framework.NoScore {
		return 0
	}
	if n.table == nil {
		return n.weighted(n.raw[r])
	}
	known := &n.table[n.raw[r]-n.low]
	if *known == unasked {
		*known = n.weighted(n.raw[r])
	}
	return *known
}

// tableRange is the widest range of raw scores that is tabulated.
const tableRange = 1024

// unasked stands in the table for what no node has asked for so far.
const unasked = math.MinInt64

// normalisers returns one for each scorer whose normalised scores differ
// between nodes, and the sum of the others, which every node gets alike.
func (o *Outcome) normalisers() (norms []normaliser, base int64) {
	for k, raw := range o.columns {
		e := o.extremes[k]
		if raw == nil || e.low > e.high {
			continue
		}
		if e.low == e.high && o.view.scorers[k].cells == nil {
			base += o.normalised(k, e.low)
			continue
		}
		n := normaliser{raw: raw, low: e.low, weighted: func(raw int64) int64 { return o.normalised(k, raw) }}
		if width := e.high - e.low; width >= 0 && width < tableRange {
			n.table = slices.Repeat([]int64{unasked}, int(width)+1)
		}
		norms = append(norms, n)
	}
	return norms, base
}

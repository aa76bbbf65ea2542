package engine

import (
	"math"

	"github.com/berth-scheduler/berth/core/table"
)

// extremes are the least and the greatest of some raw scores, and how many
// have them. When the last that has an extreme goes they are no longer known,
// and the rows are to be looked at again.
type extremes struct {
	known         bool
	low, high     int64
	atLow, atHigh int
}

func (e *extremes) add(raw int64) {
	switch {
	case e.atLow == 0 || raw < e.low:
		e.low, e.atLow = raw, 1
	case raw == e.low:
		e.atLow++
	}
	switch {
	case e.atHigh == 0 || raw > e.high:
		e.high, e.atHigh = raw, 1
	case raw == e.high:
		e.atHigh++
	}
}

func (e *extremes) remove(raw int64) {
	if raw == e.low {
		e.atLow--
	}
	if raw == e.high {
		e.atHigh--
	}
	e.known = e.known && e.atLow > 0 && e.atHigh > 0
}

// count takes in the raw score of a row that became feasible.
func (s *scorer) count(r table.Row) {
	if s.Normalize != nil && s.extremes.known {
		s.extremes.add(s.raw[r])
	}
}

// uncount takes out the raw score of a row that may no longer be feasible, or
// no longer have it.
func (s *scorer) uncount(r table.Row) {
	if s.Normalize != nil && s.extremes.known {
		s.extremes.remove(s.raw[r])
	}
}

// measure returns the extremes of each normalised scorer over the feasible
// rows. The view keeps them; where only some rows count they are found anew.
func (o *Outcome) measure() []extremes {
	all := make([]extremes, len(o.view.scorers))
	for k := range o.view.scorers {
		s := &o.view.scorers[k]
		if s.Normalize == nil {
			continue
		}
		kept := o.rows == nil && o.blocked == nil
		if kept && s.extremes.known {
			all[k] = s.extremes
			continue
		}
		all[k] = extremes{known: true, low: math.MaxInt64, high: math.MinInt64}
		o.eachFeasible(func(r table.Row) { all[k].add(s.raw[r]) })
		if kept {
			s.extremes = all[k]
		}
	}
	return all
}

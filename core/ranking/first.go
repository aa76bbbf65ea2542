package ranking

import (
	"math"

	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/table"
)

// Where more than the index decides whether a row may be chosen, rows are asked about
// one by one, the best first, until the answer is proven.

// PickThat is Pick among the rows that pass. -1: none does. passes is asked about rows
// of the highest total first, and about no more than a draw among these needs.
func (x *Index) PickThat(seed uint64, passes func(table.Row) bool) (row table.Row, total int64, ties int) {
	for below := int64(math.MaxInt64); ; below = total {
		if total, ties = x.bestBelow(below); ties == 0 {
			return -1, 0, 0
		}
		tied := func(r table.Row) bool { return x.totalIs(r, total) && passes(r) }
		row = draw.Row(seed, ties, draw.Rows{
			Candidates: len(x.states),
			Candidate:  func(i int) table.Row { return table.Row(i) },
			Tied:       tied,
			Each: func(f func(table.Row)) {
				for r := range x.states {
					if r := table.Row(r); tied(r) {
						f(r)
					}
				}
			},
		})
		if row >= 0 {
			return row, total, ties
		}
	}
}

// bestBelow is the highest total below the given one that rows of groups that fit
// have, and how many have it. The highest of all is known by group.
func (x *Index) bestBelow(below int64) (total int64, ties int) {
	total = math.MinInt64
	add := func(sum int64, n int) {
		switch {
		case sum >= below || sum < total:
		case sum > total:
			total, ties = sum, n
		default:
			ties += n
		}
	}
	if below == math.MaxInt64 {
		for id := range x.groups {
			if g := &x.groups[id]; g.Fits && g.Rows > 0 {
				add(g.Bonus+int64(g.top), int(g.ties))
			}
		}
		return total, ties
	}
	for _, s := range x.states {
		if s.feasible() {
			if g := &x.groups[s>>x.bits]; g.Fits {
				add(g.Bonus+int64(x.scoreOf(s)), 1)
			}
		}
	}
	return total, ties
}

func (x *Index) totalIs(r table.Row, total int64) bool {
	sum, fits := x.Total(r)
	return fits && sum == total
}

// Total is the row's score and its group's bonus; false where the row is not feasible
// or its group does not fit.
func (x *Index) Total(r table.Row) (total int64, fits bool) {
	s := x.states[r]
	if !s.feasible() {
		return 0, false
	}
	g := &x.groups[s>>x.bits]
	return g.Bonus + int64(x.scoreOf(s)), g.Fits
}

// Any tells whether a row of a group that is so passes.
func (x *Index) Any(is func(g *Group) bool, passes func(table.Row) bool) bool {
	wanted := make([]bool, len(x.groups))
	for id := range x.groups {
		wanted[id] = is(&x.groups[id])
	}
	for r, s := range x.states {
		if s.feasible() && wanted[s>>x.bits] && passes(table.Row(r)) {
			return true
		}
	}
	return false
}

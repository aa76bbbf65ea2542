package ranking

import (
	"math"

	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/table"
)

// Pick finds the highest total that a row of a group that Fits has, the number of
// rows that have it (ties), and one of these rows. Each has the same chance; the
// seed decides. Some group must fit and have rows.
//
// Where more than the index decides whether a row may be chosen, passes tells (nil:
// every row passes). It is asked about rows of the highest total first, and about no
// more than a draw among these needs, until a row passes; -1: none does. The ties are
// those that the index knows of.
func (x *Index) Pick(seed uint64, passes func(table.Row) bool) (row table.Row, total int64, ties int) {
	if passes != nil {
		return x.pickThat(seed, passes)
	}
	total, ties = x.best()
	return draw.Row(seed, ties, draw.Rows{
		Candidates: len(x.states),
		Candidate:  func(i int) table.Row { return table.Row(i) },
		Tied:       func(r table.Row) bool { return x.hasTotal(r, total) },
		Each:       func(f func(table.Row)) { x.eachBest(total, f) },
	}), total, ties
}

func (x *Index) pickThat(seed uint64, passes func(table.Row) bool) (row table.Row, total int64, ties int) {
	for total, ties = x.best(); ties > 0; total, ties = x.bestBelow(total) {
		tied := func(r table.Row) bool { return x.hasTotal(r, total) && passes(r) }
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
	return -1, 0, 0
}

// best is the highest total that rows of groups that fit have, and how many have it.
func (x *Index) best() (total int64, ties int) {
	total = math.MinInt64
	for id := range x.groups {
		g := &x.groups[id]
		if !g.Fits || g.Rows == 0 {
			continue
		}
		switch sum := g.Bonus + int64(g.top); {
		case sum > total:
			total, ties = sum, int(g.ties)
		case sum == total:
			ties += int(g.ties)
		}
	}
	return total, ties
}

// bestBelow is best among the totals below the given one.
func (x *Index) bestBelow(below int64) (total int64, ties int) {
	total = math.MinInt64
	for _, s := range x.states {
		if !s.feasible() {
			continue
		}
		g := &x.groups[s>>x.bits]
		if !g.Fits {
			continue
		}
		switch sum := g.Bonus + int64(x.scoreOf(s)); {
		case sum >= below || sum < total:
		case sum > total:
			total, ties = sum, 1
		default:
			ties++
		}
	}
	return total, ties
}

func (x *Index) hasTotal(r table.Row, total int64) bool {
	s := x.states[r]
	if !s.feasible() {
		return false
	}
	g := &x.groups[s>>x.bits]
	return g.Fits && g.Bonus+int64(x.scoreOf(s)) == total
}

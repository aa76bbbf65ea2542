package ranking

import (
	"math"

	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/table"
)

// Pick finds the highest total of rows in groups that fit. It returns one of the rows
// that have it, the total, and the number of these rows. Each has the same chance; the
// seed decides. Some group must fit and have rows.
func (x *Index) Pick(seed uint64) (row table.Row, total int64, ties int) {
	total, ties = x.best()
	return draw.Row(seed, ties, x.tied(total)), total, ties
}

// Sample draws n of the rows that Pick chooses from, or all if there are fewer, in a
// random order.
func (x *Index) Sample(seed uint64, n int) (rows []table.Row, total int64, ties int) {
	total, ties = x.best()
	if ties == 0 {
		return nil, total, 0
	}
	return draw.Sample(seed, ties, n, x.tied(total)), total, ties
}

func (x *Index) tied(best int64) draw.Rows {
	return draw.Rows{
		Candidates: len(x.states),
		Candidate:  func(i int) table.Row { return table.Row(i) },
		Tied:       func(r table.Row) bool { return x.hasTotal(r, best) },
		Each:       func(f func(table.Row)) { x.eachBest(best, f) },
	}
}

// best returns the highest total of rows in groups that fit, and the number of rows that
// have it.
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

func (x *Index) hasTotal(r table.Row, total int64) bool {
	s := x.states[r]
	if !s.feasible() {
		return false
	}
	g := &x.groups[s>>scoreBits]
	return g.Fits && g.Bonus+int64(s.score()) == total
}

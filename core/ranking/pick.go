package ranking

import (
	"math"

	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/table"
)

// Pick finds the highest total that a row of a group that Fits has, the number of
// rows that have it (ties), and one of these rows. Each has the same chance; the
// seed decides. Some group must fit and have rows.
func (x *Index) Pick(seed uint64) (row table.Row, total int64, ties int) {
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
	tied := func(r table.Row) bool {
		s := x.states[r]
		if !s.feasible() {
			return false
		}
		g := &x.groups[s>>x.bits]
		return g.Fits && g.Bonus+int64(x.scoreOf(s)) == total
	}
	return draw.Row(seed, ties, draw.Rows{
		Candidates: len(x.states),
		Candidate:  func(i int) table.Row { return table.Row(i) },
		Tied:       tied,
		Each:       func(f func(table.Row)) { x.eachBest(total, f) },
	}), total, ties
}

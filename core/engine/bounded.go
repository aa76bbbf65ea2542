package engine

import (
	"cmp"
	"math"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// A hosted score without NormalizeScore is at most maxScore, whatever the node. So
// rows are asked about in the order of what the other scores add up to, until none
// that is left can reach the best total. What is chosen is what would be if all had
// been asked.

// firstTries is how many of the best rows are asked about one by one, in the hope for
// a total that no row exceeds.
const firstTries = 8

// leastAsked is how many rows are asked about in the first call after that; each call
// is about twice as many as the one before.
const leastAsked = 128

// boundedScorers are the hosted scorers; false: one of them has to see all rows.
func (o *Outcome) boundedScorers() ([]profile.Scorer, bool) {
	p := o.view.keys.profile
	if slices.ContainsFunc(p.PreScore, func(pl *framework.Plugin) bool { return pl.PreScoreRows != nil }) {
		return nil, false
	}
	var list []profile.Scorer
	for _, s := range p.Score {
		switch {
		case s.ScoreRows == nil:
		case !s.Bounded:
			return nil, false
		default:
			list = append(list, s)
		}
	}
	return list, true
}

// rated is a row with what its scores add up to.
type rated struct {
	row   table.Row
	total int64
}

// pickBounded is the index's PickThat where hosted scores are added.
func (o *Outcome) pickBounded(scorers []profile.Scorer, passes func(table.Row) bool) (row table.Row, score int64, ties int) {
	most := int64(0)
	for _, s := range scorers {
		most += maxScore * s.Weight
	}
	rowOf, top := table.Row(-1), int64(0)
	for try := range uint64(firstTries) {
		if rowOf, top, ties = o.view.index.PickThat(o.drawSeed()+try, passes); rowOf < 0 {
			return -1, 0, 0
		}
		best := []rated{{rowOf, top}}
		if !o.addBounded(scorers, best) {
			return -1, 0, 0
		}
		if best[0].total == top+most {
			return rowOf, best[0].total, ties
		}
	}
	return o.searchBounded(scorers, o.rowsFrom(top-most, passes), most)
}

// rowsFrom lists the rows that pass with at least the total, the highest first.
func (o *Outcome) rowsFrom(least int64, passes func(table.Row) bool) []rated {
	var list []rated
	for r := range o.view.index.Rows() {
		if total, ok := o.view.index.Total(table.Row(r)); ok && total >= least && passes(table.Row(r)) {
			list = append(list, rated{table.Row(r), total})
		}
	}
	slices.SortFunc(list, func(a, b rated) int { return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.row, b.row)) })
	return list
}

// searchBounded adds the hosted scores until no row that is left can have more than
// the best.
func (o *Outcome) searchBounded(scorers []profile.Scorer, list []rated, most int64) (row table.Row, score int64, ties int) {
	best, tied := int64(math.MinInt64), []table.Row(nil)
	for size := leastAsked; len(list) > 0; size *= 2 {
		some := list[:min(size, len(list))]
		list = list[len(some):]
		if !o.addBounded(scorers, some) {
			return -1, 0, 0
		}
		for _, x := range some {
			if x.total > best {
				best, tied = x.total, tied[:0]
			}
			if x.total == best {
				tied = append(tied, x.row)
			}
		}
		if last := slices.IndexFunc(list, func(x rated) bool { return x.total+most < best }); last >= 0 {
			list = list[:last]
		}
	}
	isTied := map[table.Row]bool{}
	for _, r := range tied {
		isTied[r] = true
	}
	o.draw(tied, func(r table.Row) bool { return isTied[r] })
	return o.Row, best, len(tied)
}

// addBounded adds the hosted scores of the rows to their totals; false where a plugin
// fails, or scores out of range.
func (o *Outcome) addBounded(scorers []profile.Scorer, list []rated) bool {
	rows, out := make([]table.Row, len(list)), make([]int64, len(list))
	for i := range list {
		rows[i] = list[i].row
	}
	for _, s := range scorers {
		if !o.askHostedScores(s.Plugin, rows, out) {
			return false
		}
		for i := range list {
			list[i].total += s.Weight * out[i]
		}
	}
	return true
}

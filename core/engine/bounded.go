package engine

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// A hosted score without NormalizeScore is at most maxScore, whatever the node. So
// rows are asked about in the order of what the other scores add up to, until none
// that is left can reach the best total. What is chosen is what would be if all had
// been asked.

// leastAsked is how many rows are asked about in the first call. Each call is about
// twice as many as the one before, up to mostInACall.
const (
	leastAsked  = 8
	mostInACall = 2048
)

// mostCalls is after how many calls one more asks about all rows that are left.
const mostCalls = 16

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

// pickBounded is the index's Pick where hosted scores are added.
func (o *Outcome) pickBounded(scorers []profile.Scorer, passes func(table.Row) bool) (row table.Row, score int64, ties int) {
	x := boundedSearch{Outcome: o, scorers: scorers, passes: passes, best: math.MinInt64, size: leastAsked}
	for _, s := range scorers {
		x.most += maxScore * s.Weight
	}
	first, top, _ := o.view.index.Pick(o.drawSeed(), passes)
	if first < 0 {
		return -1, 0, 0
	}
	list := o.rowsFrom(top - x.most)
	for len(list) > 0 && list[0].total+x.most >= x.best {
		n := above(list, list[0].total-1)
		if x.calls >= mostCalls {
			x.ask(list[:above(list, x.best-x.most-1)])
			break
		}
		if row, score := x.level(list[:n]); row >= 0 {
			return row, score, n
		}
		if o.Rejected != nil {
			return -1, 0, 0
		}
		list = list[n:]
	}
	if o.Rejected != nil {
		return -1, 0, 0
	}
	isTied := map[table.Row]bool{}
	for _, r := range x.tied {
		isTied[r] = true
	}
	o.draw(x.tied, func(r table.Row) bool { return isTied[r] })
	return o.Row, x.best, len(x.tied)
}

// rowsFrom lists the feasible rows with at least the total, the highest first.
func (o *Outcome) rowsFrom(least int64) []rated {
	list := o.engine.rated[:0]
	index, groups := o.view.index, o.view.index.Groups()
	for r, at := range index.FeasibleRows() {
		if g := &groups[at]; g.Fits && g.Bonus+index.Score(r) >= least {
			list = append(list, rated{r, g.Bonus + index.Score(r)})
		}
	}
	o.engine.rated = list
	slices.SortFunc(list, func(a, b rated) int { return cmp.Compare(b.total, a.total) })
	return list
}

// boundedSearch is what is known of the rows that were asked about.
type boundedSearch struct {
	*Outcome
	scorers []profile.Scorer
	passes  func(table.Row) bool
	most    int64 // that the hosted scores add up to
	best    int64
	tied    []table.Row // those with the best total
	size    int         // of the next call
	calls   int
}

// above is how many rows at the front of the list have more than the total.
func above(list []rated, total int64) int {
	return sort.Search(len(list), func(i int) bool { return list[i].total <= total })
}

// ask asks about the rows that pass, and notes them; false where a plugin failed.
func (x *boundedSearch) ask(list []rated) (some []rated, ok bool) {
	x.calls++
	some = slices.DeleteFunc(slices.Clone(list), func(r rated) bool { return !x.passes(r.row) })
	if !x.addBounded(x.scorers, some) {
		return nil, false
	}
	for _, r := range some {
		x.note(r)
	}
	return some, true
}

// level asks about rows that have the same total so far, in a random order. A row that
// gets all that there is to get is chosen at once where no row before has as much:
// none after it can have more, and each that has as much might have come first. -1:
// there is none.
func (x *boundedSearch) level(list []rated) (row table.Row, score int64) {
	highest := list[0].total + x.most
	sole := highest > x.best
	for drawn := 0; drawn < len(list); x.size = min(2*x.size, mostInACall) {
		from := drawn
		drawn = min(len(list), drawn+x.size)
		for i := from; i < drawn; i++ {
			at := i + draw.Number(x.drawSeed()+uint64(i), len(list)-i)
			list[i], list[at] = list[at], list[i]
		}
		some, ok := x.ask(list[from:drawn])
		if !ok {
			return -1, 0
		}
		if first := slices.IndexFunc(some, func(r rated) bool { return r.total == highest }); sole && first >= 0 {
			return some[first].row, highest
		}
	}
	return -1, 0
}

// note keeps the rows with the best total.
func (x *boundedSearch) note(r rated) {
	if r.total > x.best {
		x.best, x.tied = r.total, x.tied[:0]
	}
	if r.total == x.best {
		x.tied = append(x.tied, r.row)
	}
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

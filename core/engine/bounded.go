package engine

import (
	"math"
	"slices"
	"sort"

	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// A hosted score without NormalizeScore is at most maxScore, whatever the node. So
// rows are asked about in the order of what the other scores add up to, until none
// that is left can reach the best total. What is chosen is what would be if all had
// been asked.

// leastAsked is how many rows are asked about in the first call. Each call is about
// growth times as many as the one before: a row is asked about sooner than a call is
// made.
const (
	leastAsked = 8
	growth     = 8
)

// inVain bounds the questions whose answers are not needed, where hosted plugins filter
// but do not score. One row that passes then settles the decision, and rows with lower
// totals need no question. A call for rows of lower totals asks about as many rows as
// were rejected so far, divided by inVain: where few rows share a total, a call for each
// total takes longer.
const inVain = 16

// boundedScorers returns the hosted scorers; false: one of them has to see all rows.
func (d *decider) boundedScorers() ([]profile.Scorer, bool) {
	p := d.view.keys.Profile
	if slices.ContainsFunc(p.PreScore, (*framework.Plugin).PreScoresRows) {
		return nil, false
	}
	var list []profile.Scorer
	for _, s := range p.Score {
		switch {
		case !s.ScoresRows():
		case !s.Hosted.Bounded:
			return nil, false
		default:
			list = append(list, s)
		}
	}
	return list, true
}

// pickHosted chooses a row with the best total, hosted scores included, among those that
// hosted filters pass. The row is -1 if none passes or a hosted plugin failed.
func (d *decider) pickHosted(scorers []profile.Scorer) (row table.Row, score int64, ties int) {
	x := boundedSearch{decider: d, scorers: scorers, best: math.MinInt64 / 2, tied: d.buffers.tied[:0]}
	for _, s := range scorers {
		x.most += maxScore * s.Weight
	}
	x.search()
	if d.buffers.tied = x.tied; len(x.tied) == 0 || d.hostedFailed() {
		return -1, 0, 0
	}
	return x.tied[draw.Number(d.drawSeed()+1, len(x.tied))], x.best, max(x.ties, len(x.tied))
}

// hostedFailed reports whether a hosted plugin failed so far.
func (d *decider) hostedFailed() bool { return d.Rejected != nil || d.hostedVerdicts.failed }

// boundedSearch holds what a search for the best row has found so far.
type boundedSearch struct {
	*decider
	scorers []profile.Scorer
	most    int64 // that the hosted scores add up to
	best    int64
	tied    []table.Row // those with the best total; one of them where ties is more
	ties    int
}

// search asks about rows, in the order of their totals, until the best are known. It
// begins with a few, which needs no sorted list.
func (x *boundedSearch) search() {
	sample, top, ties := x.view.index.Sample(x.drawSeed(), leastAsked)
	if len(sample) == 0 {
		return
	}
	first := make([]ranking.Rated, len(sample))
	for i, r := range sample {
		first[i] = ranking.Rated{Row: r, Total: top}
	}
	if x.askDrawn(first, ties) || x.hostedFailed() {
		return
	}
	list := x.buffers.order.Of(x.view.index)
	rest := slices.DeleteFunc(list[:ties], func(r ranking.Rated) bool { return slices.Contains(sample, r.Row) })
	all := len(list)
	list = list[ties-copy(list[ties-len(rest):ties], rest):]
	for size := leastAsked * growth; !x.hostedFailed(); {
		most := above(list, x.best-x.most-1)
		if most == 0 {
			return
		}
		if level := above(list, list[0].Total-1); size < level {
			for i := range size {
				at := i + draw.Number(x.drawSeed()+uint64(2+len(list)-i), level-i)
				list[i], list[at] = list[at], list[i]
			}
			if x.askDrawn(list[:size], level) {
				return
			}
			list, size = list[size:], size*growth
			continue
		}
		if x.most == 0 {
			size = max(leastAsked, (all-len(list))/inVain)
		}
		n := above(list, list[min(size, most)-1].Total-1)
		x.ask(list[:n])
		if list = list[n:]; x.most > 0 {
			size *= growth
		}
	}
}

// askDrawn asks about rows drawn at random among those with the same total so far. A row
// that gets the most that hosted scorers can add is chosen at once if no row before has
// as much: none after it can have more, and a draw might have put any of its equals
// first.
func (x *boundedSearch) askDrawn(rows []ranking.Rated, ties int) (chosen bool) {
	total := rows[0].Total + x.most
	sole := total > x.best
	for _, r := range x.ask(rows) {
		if sole && r.Total == total {
			x.tied, x.ties = append(x.tied[:0], r.Row), ties
			return true
		}
	}
	return false
}

// above returns how many rows at the front of the list have more than the total.
func above(list []ranking.Rated, total int64) int {
	return sort.Search(len(list), func(i int) bool { return list[i].Total <= total })
}

// ask asks the hosted plugins about the rows, records the best of those that pass, and
// returns all that pass.
func (x *boundedSearch) ask(rows []ranking.Rated) (passed []ranking.Rated) {
	passed = x.passing(rows)
	if len(passed) == 0 || !x.addBounded(x.scorers, passed) {
		return nil
	}
	for _, r := range passed {
		if r.Total > x.best {
			x.best, x.tied = r.Total, x.tied[:0]
		}
		if r.Total == x.best {
			x.tied = append(x.tied, r.Row)
		}
	}
	return passed
}

// passing asks the hosted filters about the rows, which fit otherwise, and moves those
// that pass to the front.
func (x *boundedSearch) passing(rows []ranking.Rated) []ranking.Rated {
	b := x.buffers
	for k, f := range x.view.hostedFilters {
		if f.skip {
			continue
		}
		known := x.knownVerdicts(k)
		b.asked = b.asked[:0]
		for _, r := range rows {
			if known[r.Row] == unasked {
				b.asked = append(b.asked, r.Row)
			}
		}
		x.noteVerdicts(k, b.asked)
		passed := 0
		for _, r := range rows {
			if known[r.Row] == framework.Fits {
				rows[passed] = r
				passed++
			}
		}
		rows = rows[:passed]
	}
	return rows
}

// addBounded adds the hosted scores of the rows to their totals; false where a plugin
// fails, or scores out of range.
func (d *decider) addBounded(scorers []profile.Scorer, list []ranking.Rated) bool {
	b := d.buffers
	b.asked, b.scores = resize(b.asked, len(list)), resize(b.scores, len(list))
	for i := range list {
		b.asked[i] = list[i].Row
	}
	for _, s := range scorers {
		if !d.askHostedScores(s.Plugin, b.asked, b.scores) {
			return false
		}
		for i := range list {
			list[i].Total += s.Weight * b.scores[i]
		}
	}
	return true
}

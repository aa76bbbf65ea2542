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

// leastAsked is the number of rows in the first call of a search. Each later call is for
// about growth times as many rows as the one before: a question is cheaper than a call.
const (
	leastAsked = 8
	growth     = 8
)

// inVain limits the number of calls where hosted plugins filter but do not score. There one row
// that passes settles the decision, and rows with lower totals need no question. While no row
// passes, the next call asks about as many rows as were rejected so far, divided by inVain: a call
// for each total would take longer.
const inVain = 16

// boundedScorers returns the hosted score plugins, perhaps none, if each is bounded: it scores a
// node at most maxScore without regard to the other nodes. It returns false if one normalises or a
// hosted plugin has a PreScore: such plugins must see all feasible rows.
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

// pickHosted chooses a row with the best total, hosted scores included, among the rows that pass
// the hosted filters; a seeded draw decides between ties. ties is the number of rows with that
// total as far as known. row is -1 if none passes or a hosted plugin failed. The buckets of the
// index must have Fits and Bonus.
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

// hostedFailed reports whether a hosted filter failed in this decision, or Rejected is set: a
// hosted scorer failed, or a score is out of range.
func (d *decider) hostedFailed() bool { return d.Rejected != nil || d.hostedVerdicts.failed }

// boundedSearch is a search for the rows with the best total, hosted scores included, that
// asks hosted plugins about as few rows as it can.
type boundedSearch struct {
	*decider
	scorers []profile.Scorer
	most    int64       // the most that all hosted scores together can add
	best    int64       // the best total so far
	tied    []table.Row // rows with the best total; only the chosen one if askDrawn chose
	ties    int         // number of rows with the best total if askDrawn chose, else 0
}

// search asks about rows in descending order of their totals without hosted scores, until no row
// that is left can reach the best total. It leaves the result in best, tied and ties. It begins
// with a sample of the best rows, which needs no sorted list, and stops if a hosted plugin fails.
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

// askDrawn asks hosted plugins about rows. These were drawn at random from the rows with the
// highest total, without hosted scores, that are left; ties is how many rows had it. If no row so
// far has that total plus the most that hosted scores can add, and one of these rows gets it,
// askDrawn makes it the only one in tied and returns true: no later row can have more, and each of
// its equals might have been drawn instead.
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

// above returns how many rows of the list, which is sorted by descending total, have more
// than total.
func above(list []ranking.Rated, total int64) int {
	return sort.Search(len(list), func(i int) bool { return list[i].Total <= total })
}

// ask asks the hosted filters and then the scorers about the rows, and updates best and tied. It
// returns the rows that pass with their full totals, in the memory of rows; nil if none passes or a
// scorer failed. hostedVerdicts.failed is set if a filter failed on some row.
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

// passing asks the hosted filters about the rows, all of which pass the native filters. It returns
// those that pass, in the memory of rows, in their order.
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

// addBounded asks the hosted scorers about the rows in list and adds their weighted scores to the
// rows' totals. It returns false if a plugin fails or a score is out of range; Rejected is set
// then.
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

package ranking

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/table"
)

// Rated is a row with the total of its scores.
type Rated struct {
	Row   table.Row
	Total int64
}

// Order is a buffer for rows sorted by their totals. The zero value is ready to use.
type Order struct {
	rows   []Rated
	counts []int32
	below  []int64 // by group: how much its bonus is below the highest total; -1: it does not fit
}

// mostTotals bounds the totals that are counted one by one.
const mostTotals = 1 << 14

// Of returns the rows of groups that fit, those with the highest totals first. The list
// is valid until the next call.
func (o *Order) Of(x *Index) []Rated {
	high, _ := x.best()
	o.below = o.below[:0]
	n, span := 0, int64(0)
	for id := range x.groups {
		g, below := &x.groups[id], int64(-1)
		if g.Fits && g.Rows > 0 {
			below = high - g.Bonus
			n, span = n+g.Rows, max(span, below+1)
		}
		o.below = append(o.below, below)
	}
	o.rows = slices.Grow(o.rows[:0], n)[:n]
	if span > mostTotals {
		o.fillBySort(x, high)
	} else {
		o.fillByCount(x, high, int(span))
	}
	return o.rows
}

// fillByCount fills the list by a counting sort; totals is the number of different totals.
func (o *Order) fillByCount(x *Index, high int64, totals int) {
	o.counts = slices.Grow(o.counts[:0], totals)[:totals]
	clear(o.counts)
	for _, s := range x.states {
		if s.feasible() && o.below[s>>scoreBits] >= 0 {
			o.counts[o.below[s>>scoreBits]-int64(s.score())]++
		}
	}
	from := int32(0)
	for i, n := range o.counts {
		o.counts[i], from = from, from+n
	}
	for r, s := range x.states {
		if s.feasible() && o.below[s>>scoreBits] >= 0 {
			below := o.below[s>>scoreBits] - int64(s.score())
			o.rows[o.counts[below]] = Rated{table.Row(r), high - below}
			o.counts[below]++
		}
	}
}

// fillBySort fills the list where there may be too many totals to count.
func (o *Order) fillBySort(x *Index, high int64) {
	o.rows = o.rows[:0]
	for r, s := range x.states {
		if s.feasible() && o.below[s>>scoreBits] >= 0 {
			o.rows = append(o.rows, Rated{table.Row(r), high - o.below[s>>scoreBits] + int64(s.score())})
		}
	}
	slices.SortFunc(o.rows, func(a, b Rated) int { return cmp.Compare(b.Total, a.Total) })
}

// Fits reports whether the row is feasible and its group fits, if there are groups.
func (x *Index) Fits(r table.Row) bool {
	s := x.states[r]
	return s.feasible() && (!x.Grouped || x.groups[s>>scoreBits].Fits)
}

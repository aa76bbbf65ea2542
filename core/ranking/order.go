package ranking

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/table"
)

// Rated is a feasible row with its total, by which rows are compared: the score plus the
// bonus of its bucket.
type Rated struct {
	Row   table.Row
	Total int64
}

// Order sorts rows by their totals and keeps the memory. The zero value is ready to use.
type Order struct {
	rows   []Rated // result of Of
	counts []int32 // scratch of fillByCount
	below  []int64 // by bucket: highest total less the bucket's bonus; -1: it does not fit
}

// mostTotals is the largest span of totals for which a counting sort is used.
const mostTotals = 1 << 14

// Of returns the rows of x in buckets that fit, in descending order of their totals. Rows with equal
// totals are in any order. The list is valid until the next call.
func (o *Order) Of(x *Index) []Rated {
	high, _ := x.best()
	o.below = o.below[:0]
	n, span := 0, int64(0)
	for id := range x.buckets {
		b, below := &x.buckets[id], int64(-1)
		if b.Fits && b.Rows > 0 {
			below = high - b.Bonus
			n, span = n+b.Rows, max(span, below+1)
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

// fillByCount fills rows by a counting sort. high is the highest total, totals the span of
// totals down from it.
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

// fillBySort fills rows by comparison, where the totals span too much for a counting sort.
// high is the highest total.
func (o *Order) fillBySort(x *Index, high int64) {
	o.rows = o.rows[:0]
	for r, s := range x.states {
		if s.feasible() && o.below[s>>scoreBits] >= 0 {
			o.rows = append(o.rows, Rated{table.Row(r), high - o.below[s>>scoreBits] + int64(s.score())})
		}
	}
	slices.SortFunc(o.rows, func(a, b Rated) int { return cmp.Compare(b.Total, a.Total) })
}

// Fits reports whether the row is feasible and, with buckets, its bucket's Fits is set.
func (x *Index) Fits(r table.Row) bool {
	s := x.states[r]
	return s.feasible() && (!x.Bucketed || x.buckets[s>>scoreBits].Fits)
}

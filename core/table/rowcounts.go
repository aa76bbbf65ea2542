package table

import (
	"cmp"
	"slices"
)

// rowCounts is a number by row, sorted by row. Rows that have none are left out.
type rowCounts []RowCount

// RowCount is a number on a row.
type RowCount struct {
	Row Row
	N   int32
}

func (l rowCounts) find(r Row) (at int, found bool) {
	return slices.BinarySearchFunc(l, r, func(c RowCount, r Row) int { return cmp.Compare(c.Row, r) })
}

func (l rowCounts) of(r Row) int32 {
	if at, found := l.find(r); found {
		return l[at].N
	}
	return 0
}

// add adds to the row's number and returns what it was.
func (l rowCounts) add(r Row, n int32) (before int32, now rowCounts) {
	at, found := l.find(r)
	if !found {
		return 0, slices.Insert(l, at, RowCount{r, n})
	}
	before = l[at].N
	if l[at].N += n; l[at].N == 0 {
		l = slices.Delete(l, at, at+1)
	}
	return before, l
}

// podsByRow is a number of pods by row, in no order. It is quick to go through and to
// change.
type podsByRow struct {
	list []RowCount
	at   map[Row]int32 // the row's place in the list
}

func (l *podsByRow) add(r Row, n int32) {
	at, found := l.at[r]
	if !found {
		if l.at == nil {
			l.at = map[Row]int32{}
		}
		l.at[r] = int32(len(l.list))
		l.list = append(l.list, RowCount{r, n})
		return
	}
	if l.list[at].N += n; l.list[at].N != 0 {
		return
	}
	last := l.list[len(l.list)-1]
	l.list[at], l.at[last.Row] = last, at
	l.list = l.list[:len(l.list)-1]
	delete(l.at, r)
}

func (l *podsByRow) of(r Row) int32 {
	if at, found := l.at[r]; found {
		return l.list[at].N
	}
	return 0
}

func (l *podsByRow) clear() {
	l.list = l.list[:0]
	clear(l.at)
}

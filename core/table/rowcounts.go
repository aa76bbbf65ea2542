package table

import (
	"cmp"
	"slices"
)

// rowCounts is a number by row, sorted by row. Rows that have none are left out.
type rowCounts []rowCount

type rowCount struct {
	row Row
	n   int32
}

func (l rowCounts) find(r Row) (at int, found bool) {
	return slices.BinarySearchFunc(l, r, func(c rowCount, r Row) int { return cmp.Compare(c.row, r) })
}

func (l rowCounts) of(r Row) int32 {
	if at, found := l.find(r); found {
		return l[at].n
	}
	return 0
}

// add adds to the row's number and returns what it was.
func (l rowCounts) add(r Row, n int32) (before int32, now rowCounts) {
	at, found := l.find(r)
	if !found {
		return 0, slices.Insert(l, at, rowCount{r, n})
	}
	before = l[at].n
	if l[at].n += n; l[at].n == 0 {
		l = slices.Delete(l, at, at+1)
	}
	return before, l
}

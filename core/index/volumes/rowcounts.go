package volumes

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/table"
)

// users counts who has a thing, by thing and row. Things that nobody has are left out.
type users[K comparable] map[K]rowCounts

// add adds to the thing's users on the row and returns how many they were.
func (u users[K]) add(of K, r table.Row, n int32) (before int32) {
	before, list := u[of].add(r, n)
	if len(list) > 0 {
		u[of] = list
	} else {
		delete(u, of)
	}
	return before
}

// equal reports whether others count the same.
func (u users[K]) equal(o users[K]) bool {
	if len(u) != len(o) {
		return false
	}
	for of, list := range u { // any order: all must be equal
		if !slices.Equal(list, o[of]) {
			return false
		}
	}
	return true
}

// rowCounts is a number by row, sorted by row. Rows that have none are left out.
type rowCounts []table.RowCount

func (l rowCounts) find(r table.Row) (at int, found bool) {
	return slices.BinarySearchFunc(l, r, func(c table.RowCount, r table.Row) int { return cmp.Compare(c.Row, r) })
}

func (l rowCounts) of(r table.Row) int32 {
	if at, found := l.find(r); found {
		return l[at].N
	}
	return 0
}

// add adds to the row's number and returns what it was.
func (l rowCounts) add(r table.Row, n int32) (before int32, now rowCounts) {
	at, found := l.find(r)
	if !found {
		return 0, slices.Insert(l, at, table.RowCount{Row: r, N: n})
	}
	before = l[at].N
	if l[at].N += n; l[at].N == 0 {
		l = slices.Delete(l, at, at+1)
	}
	return before, l
}

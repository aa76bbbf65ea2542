package volumes

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/table"
)

// users counts, by thing (volume, claim, disk) and row, the pods or attachments that use
// it. Things without users are left out.
type users[K comparable] map[K]rowCounts

// add adds n, which may be negative, to the number of users of the thing (volume, claim or
// disk) on the row. It returns the number before, by which the caller sees the first user
// come or the last one leave.
func (u users[K]) add(of K, r table.Row, n int32) (before int32) {
	before, list := u[of].add(r, n)
	if len(list) > 0 {
		u[of] = list
	} else {
		delete(u, of)
	}
	return before
}

// equal reports whether both hold the same counts.
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

// rowCounts holds a number for each row, mostly of the users of one volume there, sorted
// by row. Rows with 0 are left out.
type rowCounts []table.RowCount

// find returns the index of the row, or where it would be, and whether it is there.
func (l rowCounts) find(r table.Row) (at int, found bool) {
	return slices.BinarySearchFunc(l, r, func(c table.RowCount, r table.Row) int { return cmp.Compare(c.Row, r) })
}

// of returns the row's number, 0 if it is not there.
func (l rowCounts) of(r table.Row) int32 {
	if at, found := l.find(r); found {
		return l[at].N
	}
	return 0
}

// add adds n, which may be negative, to the row's number. It returns the number before,
// and the list with the change, which replaces l.
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

package table

import "slices"

// RowCount is a row with a number, mostly that of pods of some kind on it.
type RowCount struct {
	Row Row
	N   int32
}

// podsByRow holds a number of pods by row, for the rows where it is not 0, in no order.
type podsByRow struct {
	list []RowCount
	at   map[Row]int32 // index in list by row; nil while the list is short
}

// fewRows is the length up to which the list is searched without a map. Most terms are on
// no more rows.
const fewRows = 8

// find returns the row's index in the list; false if it is not there.
func (l *podsByRow) find(r Row) (at int32, found bool) {
	if l.at != nil {
		at, found = l.at[r]
		return at, found
	}
	i := slices.IndexFunc(l.list, func(c RowCount) bool { return c.Row == r })
	return int32(i), i >= 0
}

// add adds n, which may be negative, to the number of pods on the row. A row that has none
// then is removed from the list.
func (l *podsByRow) add(r Row, n int32) {
	at, found := l.find(r)
	if !found {
		l.append(RowCount{r, n})
		return
	}
	if l.list[at].N += n; l.list[at].N != 0 {
		return
	}
	last := l.list[len(l.list)-1]
	l.list[at] = last
	l.list = l.list[:len(l.list)-1]
	if l.at != nil {
		l.at[last.Row] = at
		delete(l.at, r)
	}
}

// append adds a row that is not in the list.
func (l *podsByRow) append(c RowCount) {
	l.list = append(l.list, c)
	switch {
	case l.at != nil:
		l.at[c.Row] = int32(len(l.list) - 1)
	case len(l.list) > fewRows:
		l.at = map[Row]int32{}
		for i, c := range l.list {
			l.at[c.Row] = int32(i)
		}
	}
}

// of returns the row's number, 0 if it is not in the list.
func (l *podsByRow) of(r Row) int32 {
	if at, found := l.find(r); found {
		return l.list[at].N
	}
	return 0
}

// clear removes all rows and keeps the memory.
func (l *podsByRow) clear() {
	l.list = l.list[:0]
	clear(l.at)
}

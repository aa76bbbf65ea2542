package table

import "slices"

// RowCount is a number on a row.
type RowCount struct {
	Row Row
	N   int32
}

// podsByRow is a number of pods by row, in no order. It is quick to go through and to
// change.
type podsByRow struct {
	list []RowCount
	at   map[Row]int32 // the row's place in the list; nil while there are few
}

// fewRows is how many rows are found without a map. Most terms are on no more.
const fewRows = 8

// find returns the row's place in the list.
func (l *podsByRow) find(r Row) (at int32, found bool) {
	if l.at != nil {
		at, found = l.at[r]
		return at, found
	}
	i := slices.IndexFunc(l.list, func(c RowCount) bool { return c.Row == r })
	return int32(i), i >= 0
}

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

func (l *podsByRow) of(r Row) int32 {
	if at, found := l.find(r); found {
		return l.list[at].N
	}
	return 0
}

func (l *podsByRow) clear() {
	l.list = l.list[:0]
	clear(l.at)
}

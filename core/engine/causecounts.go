package engine

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// causeCounts counts nodes by the cause (filter and verdict) of their rejection, for the
// message of an unschedulable pod. The zero value is ready to use.
type causeCounts struct {
	list []causeCount
	at   map[ranking.Cause]int // index into list by cause; nil while list is short
	last int                   // index of the last cause found; neighbours often have the same
}

// causeCount is the number of nodes that were rejected for one cause.
type causeCount struct {
	ranking.Cause
	nodes int
	first table.Row // the lowest row that was added
}

// fewCounts is the length up to which the list of causes is searched without a map, because
// that is faster.
const fewCounts = 24

// add adds nodes, which may be negative, to the count of the cause. r is the lowest of their rows;
// the cause's message is made from the lowest row of all.
func (l *causeCounts) add(c ranking.Cause, nodes int, r table.Row) {
	if l.last >= len(l.list) || l.list[l.last].Cause != c {
		l.last = l.find(c, r)
	}
	found := &l.list[l.last]
	found.nodes += nodes
	found.first = min(found.first, r)
}

// find returns the index of the cause in the list. It appends a count of 0 nodes, with r as
// first row, if the cause is new.
func (l *causeCounts) find(c ranking.Cause, r table.Row) int {
	if len(l.list) < fewCounts {
		for i := range l.list {
			if l.list[i].Cause == c {
				return i
			}
		}
	} else if l.at == nil {
		l.at = map[ranking.Cause]int{}
		for i := range l.list {
			l.at[l.list[i].Cause] = i
		}
	}
	if at, known := l.at[c]; known {
		return at
	}
	if l.list = append(l.list, causeCount{Cause: c, first: r}); l.at != nil {
		l.at[c] = len(l.list) - 1
	}
	return len(l.list) - 1
}

// sorted returns the causes with at least one node, by filter position, then by verdict. It
// removes the others and reorders the list: nothing may be added afterwards.
func (l *causeCounts) sorted() []causeCount {
	l.list = slices.DeleteFunc(l.list, func(c causeCount) bool { return c.nodes == 0 })
	slices.SortFunc(l.list, func(a, b causeCount) int {
		return cmp.Or(cmp.Compare(a.Filter, b.Filter), cmp.Compare(a.Verdict, b.Verdict))
	})
	return l.list
}

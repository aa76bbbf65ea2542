package engine

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// causeCounts counts nodes by the cause for which they are rejected. The zero value is
// ready to use.
type causeCounts struct {
	list []causeCount
	at   map[ranking.Cause]int // of the list, where it is long
	last int                   // index of the last cause found; neighbours often have the same
}

type causeCount struct {
	ranking.Cause
	nodes int
	first table.Row // the lowest row that it was found on
}

// fewCounts are looked through faster than they are hashed.
const fewCounts = 24

// add adds n nodes to the count of the cause; n may be negative. r is the lowest row of
// them.
func (l *causeCounts) add(c ranking.Cause, nodes int, r table.Row) {
	if l.last >= len(l.list) || l.list[l.last].Cause != c {
		l.last = l.find(c, r)
	}
	found := &l.list[l.last]
	found.nodes += nodes
	found.first = min(found.first, r)
}

// find finds or makes the cause's place in the list.
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

// sorted returns the causes that have nodes, by filter, then by verdict. Nothing may be
// added after it.
func (l *causeCounts) sorted() []causeCount {
	l.list = slices.DeleteFunc(l.list, func(c causeCount) bool { return c.nodes == 0 })
	slices.SortFunc(l.list, func(a, b causeCount) int {
		return cmp.Or(cmp.Compare(a.Filter, b.Filter), cmp.Compare(a.Verdict, b.Verdict))
	})
	return l.list
}

package table

import (
	"math"
	"time"

	"github.com/berth-scheduler/berth/core/object"
)

// LowestPriority returns the lowest priority of a pod on the row, math.MaxInt32 where there
// is none.
func (t *Table) LowestPriority(r Row) int32 { return t.lowest[r].priority }

// LatestOfLowest returns the latest start of a pod of that priority on the row. One that was not
// started counts as starting now, for which zero stands.
func (t *Table) LatestOfLowest(r Row, now time.Time) time.Time {
	if l := &t.lowest[r]; !l.unstarted || l.latest.After(now) {
		return l.latest
	}
	return time.Time{}
}

// LowestPriorityOfAll returns the lowest priority of a pod on any row, math.MaxInt32 where
// there is none. It looks at the rows once for each state of the table.
func (t *Table) LowestPriorityOfAll() int32 {
	if l := &t.lowestOfAll; l.revision != t.revision || !l.known {
		l.priority, l.revision, l.known = math.MaxInt32, t.revision, true
		for r := range t.lowest {
			l.priority = min(l.priority, t.lowest[r].priority)
		}
	}
	return t.lowestOfAll.priority
}

// lowest is about the pods of the lowest priority on a row.
type lowest struct {
	priority  int32     // math.MaxInt32 where there are no pods
	unstarted bool      // some of them were not started
	latest    time.Time // the latest start of the others
}

var noLowest = lowest{priority: math.MaxInt32}

func lowestOf(pods []*Placed) lowest {
	l := noLowest
	for _, pl := range pods {
		l.add(pl.Pod)
	}
	return l
}

func (l *lowest) add(p *object.Pod) {
	if p.Priority > l.priority {
		return
	}
	if p.Priority < l.priority {
		*l = lowest{priority: p.Priority}
	}
	if p.Started.IsZero() {
		l.unstarted = true
	} else if p.Started.After(l.latest) {
		l.latest = p.Started
	}
}

// Package priorities keeps the lowest priority of the pods on each row of a table, and the rows
// with pods of PodGroups (scheduling.k8s.io), which have the priority of their group.
package priorities

import (
	"fmt"
	"math"
	"time"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Index keeps, for each row, the lowest priority of its pods, the latest start time of the pods
// that have it, and the number of its pods that are in a PodGroup (scheduling.k8s.io).
type Index struct {
	table   *table.Table
	rows    []lowest // by row
	grouped []int32  // by row
	// ofAll is the result of LowestOfAll at a revision of the table.
	ofAll struct {
		priority int32
		revision uint64 // of the table, when it was found
		known    bool
	}
}

// index registers the Index, so that every table has one.
var index = table.Follow(func(t *table.Table) table.Follower[*Index] {
	x := &Index{table: t}
	return table.Follower[*Index]{Index: x, Came: x.came, Left: x.left, NodeChanged: x.grow, Check: x.check}
})

// Of returns the table's index of the lowest pod priority on each row.
func Of(t *table.Table) *Index { return index.Of(t) }

// grow adds a row without pods when the table gets one.
func (x *Index) grow(r table.Row, _, _ *object.Node) {
	if int(r) == len(x.rows) {
		x.rows, x.grouped = append(x.rows, noLowest), append(x.grouped, 0)
	}
}

// came updates the row for a pod that was placed there.
func (x *Index) came(pl *table.Placed) {
	x.rows[pl.Row].add(pl.Pod)
	if pl.Pod.KubernetesGroup() != "" {
		x.grouped[pl.Row]++
	}
}

// left updates the row for a pod that was removed from it. It looks at all pods left on the row
// if the pod had the lowest priority.
func (x *Index) left(pl *table.Placed) {
	if pl.Pod.Priority == x.rows[pl.Row].priority {
		x.rows[pl.Row] = lowestOf(x.table.Pods(pl.Row))
	}
	if pl.Pod.KubernetesGroup() != "" {
		x.grouped[pl.Row]--
	}
}

// Lowest returns the lowest priority of the pods on the row, math.MaxInt32 if there are
// none.
func (x *Index) Lowest(r table.Row) int32 { return x.rows[r].priority }

// Grouped reports whether a pod on the row is in a PodGroup of scheduling.k8s.io. Groups from
// other sources do not count.
func (x *Index) Grouped(r table.Row) bool { return x.grouped[r] > 0 }

// LatestOfLowest returns the latest start time of the pods on the row that have its lowest
// priority. Pods that have not started count as started now: if that is the latest, the
// result is zero.
func (x *Index) LatestOfLowest(r table.Row, now time.Time) time.Time {
	if l := &x.rows[r]; !l.unstarted || l.latest.After(now) {
		return l.latest
	}
	return time.Time{}
}

// LowestOfAll returns the lowest priority of the pods on all rows, math.MaxInt32 if there
// are none: a pod without a higher one cannot preempt. It looks at the rows once for each
// revision of the table.
func (x *Index) LowestOfAll() int32 {
	if l := &x.ofAll; l.revision != x.table.Revision() || !l.known {
		l.priority, l.revision, l.known = math.MaxInt32, x.table.Revision(), true
		for r := range x.rows {
			l.priority = min(l.priority, x.rows[r].priority)
		}
	}
	return x.ofAll.priority
}

// lowest describes the pods of the lowest priority on a row.
type lowest struct {
	priority  int32     // math.MaxInt32 where there are no pods
	unstarted bool      // one of them has not started
	latest    time.Time // the latest start time of the others
}

// noLowest stands for a row without pods. Its priority is above that of any pod, so no pod
// can be preempted there.
var noLowest = lowest{priority: math.MaxInt32}

// lowestOf returns the lowest priority of the pods, with the start times of those that have
// it.
func lowestOf(pods []*table.Placed) lowest {
	l := noLowest
	for _, pl := range pods {
		l.add(pl.Pod)
	}
	return l
}

// add updates l for one more pod on the row.
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

// check returns an error for the first difference between the index and the table's pods, counted
// anew: in the lowest priorities, their start times, and the numbers of pods in PodGroups.
func (x *Index) check(*Index) error {
	for _, r := range x.table.All() {
		if is, now := x.rows[r], lowestOf(x.table.Pods(r)); is.priority != now.priority || is.unstarted != now.unstarted || !is.latest.Equal(now.latest) {
			return fmt.Errorf("node %q: lowest priority %+v, recounted %+v", x.table.Name(r), is, now)
		}
		grouped := int32(0)
		for _, pl := range x.table.Pods(r) {
			if pl.Pod.KubernetesGroup() != "" {
				grouped++
			}
		}
		if grouped != x.grouped[r] {
			return fmt.Errorf("node %q: %d pods of groups, recounted %d", x.table.Name(r), x.grouped[r], grouped)
		}
	}
	if l := x.ofAll; l.known && l.revision == x.table.Revision() {
		if x.ofAll.known = false; x.LowestOfAll() != l.priority {
			return fmt.Errorf("lowest priority of all %d, recounted %d", l.priority, x.ofAll.priority)
		}
	}
	return nil
}

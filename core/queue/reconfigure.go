package queue

import (
	"cmp"
	"slices"
	"time"
)

// Backoffs holds the backoff of a pod's first rejection, and the longest.
type Backoffs struct{ Initial, Max time.Duration }

// Reconfigure applies changed profiles and backoffs. The pods of attempts that were
// broken off, and all others that wait, become active as if they had just come, in the
// new order, unless PreEnqueue gates them. Pods in flight continue; one that comes back
// is tried again.
func (q *Queue) Reconfigure(now time.Time, b Backoffs, brokenOff []*Entry) {
	q.opts.InitialBackoff, q.opts.MaxBackoff = max(b.Initial, 0), max(b.Max, 0)
	entries := slices.SortedFunc(q.Entries(), func(a, b *Entry) int { return cmp.Compare(a.Sequence, b.Sequence) })
	q.plugins.plugins, q.plugins.byKey = nil, map[string]*peers{}
	for _, e := range entries {
		e.rejectors, e.unknown, e.peers = nil, nil, nil
		e.backoffEnd, e.errors = time.Time{}, 0
	}
	q.SortAnew()
	for _, e := range entries {
		if e.place == InFlight && !slices.Contains(brokenOff, e) {
			e.activated = true
			continue
		}
		if e.preEnqueueStatus = q.opts.PreEnqueue(e.Pod); e.preEnqueueStatus != nil {
			q.put(now, e, Gated, eventReconfigured)
		} else if e.place != Active {
			q.put(now, e, Active, eventReconfigured)
		}
	}
}

// SortAnew sorts all waiting pods again, after QueueSort changed.
func (q *Queue) SortAnew() {
	for i := range q.heaps {
		q.heaps[i].sortAnew()
	}
}

// sortAnew sorts the entries again, after the order changed.
func (h *heap) sortAnew() {
	entries := slices.Collect(h.all())
	*h = heap{less: h.less}
	for _, e := range entries {
		h.push(e)
	}
}

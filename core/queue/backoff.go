package queue

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// window is the length of the time windows to which backoffs are rounded: within a window
// pods leave backoff in QueueSort's order (kube-scheduler, feature SchedulerPopFromBackoffQ).
const window = time.Second

// backoff returns the wait after the count-th failure: initial, doubled with each further
// failure, at most max; 0 if count is 0.
func backoff(initial, max time.Duration, count int) time.Duration {
	if count <= 0 {
		return 0
	}
	shift := count - 1
	if initial > max>>shift {
		return max
	}
	return initial << shift
}

// backoffs computes when the backoff of a pod ends.
type backoffs struct {
	opts  *Options
	epoch time.Time // start of the first window
}

// backoffEnd returns the start of the window in which the pod's backoff ends, counted from its
// Timestamp; zero for no backoff. If the last attempt ended in an error, the errors in a row count,
// else all rejections. The longest backoff of a group grows with the square root of the number of
// its waiting pods.
func (b *backoffs) backoffEnd(e *Entry) time.Time {
	count := e.rejections
	if e.errors > 0 {
		count = e.errors
	}
	if b.opts.MaxBackoff == 0 || count == 0 {
		return time.Time{}
	}
	longest := b.opts.MaxBackoff
	if e.group != nil {
		longest = time.Duration(min(float64(longest)*math.Sqrt(float64(len(e.group.waiting))), float64(math.MaxInt64/2)))
	}
	return b.window(e.order.Timestamp.Add(backoff(b.opts.InitialBackoff, longest, count)))
}

// grain returns the length of a window; 0 if pods wait their backoff out, as windows are
// not used then.
func (b *backoffs) grain() time.Duration {
	if b.opts.WaitOutBackoff {
		return 0
	}
	return window
}

// window returns the start of the window that t is in, or t itself if pods wait their
// backoff out (WaitOutBackoff). Windows are counted from the first whole second that the
// queue has seen, because Truncate would drop the monotonic reading, and a clock that is
// set back would prolong backoffs.
func (b *backoffs) window(t time.Time) time.Time {
	if b.opts.WaitOutBackoff {
		return t
	}
	if b.epoch.IsZero() {
		b.epoch = t.Add(-t.Sub(t.Truncate(window)))
	}
	return b.epoch.Add(t.Sub(b.epoch).Truncate(window))
}

// backingOff reports whether the pod's backoff is not over yet. It is over at the end of
// its window.
func (b *backoffs) backingOff(e *Entry, now time.Time) bool {
	return !e.backoffEnd.IsZero() && now.Before(e.backoffEnd.Add(b.grain()))
}

// Backoffs configures how long a pod waits after a failure: Initial after the first, and twice as
// long after each further one, at most Max.
type Backoffs struct{ Initial, Max time.Duration }

// Reconfigure applies changed profiles and backoffs. All waiting pods, and those in brokenOff whose
// attempts were aborted, become active as if they had just been added, in the new order, unless
// PreEnqueue gates them. Other pods in flight continue; if they come back, they go to active or
// backoff instead of becoming unschedulable.
func (q *Queue) Reconfigure(now time.Time, b Backoffs, brokenOff []*Entry) {
	q.opts.InitialBackoff, q.opts.MaxBackoff = max(b.Initial, 0), max(b.Max, 0)
	entries := slices.SortedFunc(q.Entries(), func(a, b *Entry) int { return cmp.Compare(a.Sequence, b.Sequence) })
	q.plugins = newPluginIndex(q.plugins.eventsToRegister)
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
		if e.group != nil {
			if e == e.group.waiting[0] {
				q.enqueueGroup(now, e, Active, eventReconfigured, "")
			}
			continue
		}
		if e.preEnqueueStatus = q.opts.PreEnqueue(e.Pod); e.preEnqueueStatus != nil {
			q.put(now, e, Gated, eventReconfigured, "")
		} else if e.place != Active {
			q.put(now, e, Active, eventReconfigured, "")
		}
	}
}

// SortAnew sorts all waiting pods again. Call it after the order of Options.Less changed.
func (q *Queue) SortAnew() {
	for i := range q.heaps {
		q.heaps[i].sortAnew()
	}
}

// sortAnew sorts the entries again after the order of less changed.
func (h *heap) sortAnew() {
	entries := slices.Collect(h.all())
	*h = heap{less: h.less}
	for _, e := range entries {
		h.push(e)
	}
}

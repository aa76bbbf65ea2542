package queue

import "time"

// window is the grain of backoff: it ends by whole seconds, and in each the
// pods are in QueueSort's order (v1.36, feature SchedulerPopFromBackoffQ).
const window = time.Second

// backoff returns the wait after the count-th failure: initial, doubled with each
// further failure, at most max.
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

// backoffEnd returns the window in which the pod's backoff ends: errors in a row count
// when the last attempt was one, else all rejections.
func (q *Queue) backoffEnd(e *Entry) time.Time {
	count := e.rejections
	if e.errors > 0 {
		count = e.errors
	}
	if q.opts.MaxBackoff == 0 || count == 0 {
		return time.Time{}
	}
	return q.window(e.Timestamp.Add(backoff(q.opts.InitialBackoff, q.opts.MaxBackoff, count)))
}

// grain returns how long a window is.
func (q *Queue) grain() time.Duration {
	if q.opts.WaitOutBackoff {
		return 0
	}
	return window
}

// window returns the start of the window that the time is in. It is counted from
// the first whole second that the queue has seen, because Truncate would drop
// the monotonic reading, and a clock that is set back would prolong backoffs.
func (q *Queue) window(t time.Time) time.Time {
	if q.opts.WaitOutBackoff {
		return t
	}
	if q.epoch.IsZero() {
		q.epoch = t.Add(-t.Sub(t.Truncate(window)))
	}
	return q.epoch.Add(t.Sub(q.epoch).Truncate(window))
}

// backingOff reports whether the pod's backoff is not over. It ends with the time window
// that it falls into.
func (q *Queue) backingOff(e *Entry, now time.Time) bool {
	return !e.backoffEnd.IsZero() && now.Before(e.backoffEnd.Add(q.grain()))
}

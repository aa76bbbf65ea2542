package queue

import (
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// Listener is told what the queue does with pods, while it does it. It may not
// call the queue. A nil field is told nothing. The fields may change between two
// calls of the queue.
type Listener struct {
	// Moved: the pod came to its place from another because of the event, which is
	// named as in Arrival. It may have come from the same place. The plugins of the
	// entry's State are those of the last attempt.
	Moved func(e *Entry, from Place, event string)
	// Skipped: the event makes the unschedulable pod no more schedulable.
	Skipped func(p *object.Pod, event string)
	// WouldFailAgain: queueing hints would have the unschedulable pod tried again because of
	// the event, and Options.WouldFailAgain said that this would be in vain.
	WouldFailAgain func(p *object.Pod, event string)
}

// Listen has the queue tell the listener, too, from now on.
func (q *Queue) Listen(l *Listener) { q.listeners = append(q.listeners, l) }

func (q *Queue) tellMoved(e *Entry, from Place, event string) {
	for _, l := range q.listeners {
		if l.Moved != nil {
			l.Moved(e, from, event)
		}
	}
}

// skipsWanted reports whether anybody listens to what events skip.
func (q *Queue) skipsWanted() bool {
	return slices.ContainsFunc(q.listeners, func(l *Listener) bool { return l.Skipped != nil })
}

// tellSkipped tells of the pods that an event has left where they were.
func (q *Queue) tellSkipped(event string, preCheck func(*object.Pod) bool) {
	for e := range q.heaps[Unschedulable].all() {
		if preCheck != nil && !preCheck(e.Pod) {
			continue
		}
		for _, l := range q.listeners {
			if l.Skipped != nil {
				l.Skipped(e.Pod, event)
			}
		}
	}
}

// wouldFailAgainWanted reports whether anybody listens to whose tries would be in vain.
func (q *Queue) wouldFailAgainWanted() bool {
	return slices.ContainsFunc(q.listeners, func(l *Listener) bool { return l.WouldFailAgain != nil })
}

// tellSpared tells of the pods that are too large, unless another plugin calls them.
func (q *Queue) tellSpared(spared []*alike, event string, preCheck func(*object.Pod) bool) {
	for _, a := range spared {
		for _, e := range a.entries {
			if a.strategy == skip && (preCheck == nil || preCheck(e.Pod)) {
				q.tellWouldFailAgain(e.Pod, event)
			}
		}
	}
}

func (q *Queue) tellWouldFailAgain(p *object.Pod, event string) {
	for _, l := range q.listeners {
		if l.WouldFailAgain != nil {
			l.WouldFailAgain(p, event)
		}
	}
}

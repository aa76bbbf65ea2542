package queue

import (
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// Listener holds callbacks for what the queue does with pods, called while it does it.
// They may not call the queue. A nil field is not called. The fields may change between
// two calls of the queue.
type Listener struct {
	// Moved is called after the pod came to its place from another, perhaps the same,
	// because of the event, which is named as in Arrival. The plugins of the entry's
	// State are those of the last attempt.
	Moved func(e *Entry, from Place, event string)
	// Skipped: the event makes the unschedulable pod no more schedulable.
	Skipped func(p *object.Pod, event string)
	// WouldFailAgain is called for an unschedulable pod that queueing hints would move
	// because of the event, and that stays because the event could not help it
	// (Options.Foresight).
	WouldFailAgain func(p *object.Pod, event string)
}

// Listen adds a listener.
func (q *Queue) Listen(l *Listener) { q.listeners = append(q.listeners, l) }

// listeners are all that listen to the queue.
type listeners []*Listener

func (all listeners) tellMoved(e *Entry, from Place, event string) {
	for _, l := range all {
		if l.Moved != nil {
			l.Moved(e, from, event)
		}
	}
}

// skipsWanted reports whether a listener wants to know which pods an event skips.
func (all listeners) skipsWanted() bool {
	return slices.ContainsFunc(all, func(l *Listener) bool { return l.Skipped != nil })
}

// notifySkipped calls Skipped of the listeners for each unschedulable pod, all of which
// the event left in place.
func (all listeners) notifySkipped(unschedulable *heap, event string, preCheck func(*object.Pod) bool) {
	for e := range unschedulable.all() {
		if preCheck != nil && !preCheck(e.Pod) {
			continue
		}
		for _, l := range all {
			if l.Skipped != nil {
				l.Skipped(e.Pod, event)
			}
		}
	}
}

// wouldFailAgainWanted reports whether a listener wants to know which pods would fail
// again.
func (all listeners) wouldFailAgainWanted() bool {
	return slices.ContainsFunc(all, func(l *Listener) bool { return l.WouldFailAgain != nil })
}

// notifySpared calls WouldFailAgain of the listeners for pods that are too large, unless
// another plugin's hint moves them.
func (all listeners) notifySpared(spared []*peers, event string, preCheck func(*object.Pod) bool) {
	for _, a := range spared {
		for _, e := range a.entries {
			if a.strategy == skip && (preCheck == nil || preCheck(e.Pod)) {
				all.notifyWouldFailAgain(e.Pod, event)
			}
		}
	}
}

func (all listeners) notifyWouldFailAgain(p *object.Pod, event string) {
	for _, l := range all {
		if l.WouldFailAgain != nil {
			l.WouldFailAgain(p, event)
		}
	}
}

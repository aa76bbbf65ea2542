package queue

import (
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// Listener holds callbacks that the queue calls while it moves pods or leaves them. They
// may not call the queue. A nil field is not called. The fields may change between two
// calls of the queue.
type Listener struct {
	// Moved is called after a pod was put into a place, perhaps the one that it was in,
	// because of the event, which is named as in Arrival. The plugins of the entry's State
	// are those of the last attempt.
	Moved func(e *Entry, from Place, event string)
	// Skipped is called for each unschedulable pod that no queueing hint moves for the
	// event.
	Skipped func(p *object.Pod, event string)
	// WouldFailAgain is called for an unschedulable pod that queueing hints would move
	// because of the event, but that stays since the event could not help it
	// (Options.Foresight).
	WouldFailAgain func(p *object.Pod, event string)
}

// Listen adds a listener; there is no way to remove it.
func (q *Queue) Listen(l *Listener) { q.listeners = append(q.listeners, l) }

// listeners are all listeners of a queue.
type listeners []*Listener

// tellMoved calls every listener's Moved for a pod that moved from the place from because of the
// event.
func (all listeners) tellMoved(e *Entry, from Place, event string) {
	for _, l := range all {
		if l.Moved != nil {
			l.Moved(e, from, event)
		}
	}
}

// skipsWanted reports whether a listener has Skipped set.
func (all listeners) skipsWanted() bool {
	return slices.ContainsFunc(all, func(l *Listener) bool { return l.Skipped != nil })
}

// notifySkipped calls the listeners' Skipped for each pod that is unschedulable after the
// event and that preCheck, unless nil, does not exclude.
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

// wouldFailAgainWanted reports whether a listener has WouldFailAgain set.
func (all listeners) wouldFailAgainWanted() bool {
	return slices.ContainsFunc(all, func(l *Listener) bool { return l.WouldFailAgain != nil })
}

// notifySpared calls WouldFailAgain for pods that are too large for the event's node,
// unless another plugin's hint moves them or preCheck excludes them.
func (all listeners) notifySpared(spared []*peers, event string, preCheck func(*object.Pod) bool) {
	for _, a := range spared {
		for _, e := range a.entries {
			if a.strategy == skip && (preCheck == nil || preCheck(e.Pod)) {
				all.notifyWouldFailAgain(e.Pod, event)
			}
		}
	}
}

// notifyWouldFailAgain calls the listeners' WouldFailAgain.
func (all listeners) notifyWouldFailAgain(p *object.Pod, event string) {
	for _, l := range all {
		if l.WouldFailAgain != nil {
			l.WouldFailAgain(p, event)
		}
	}
}

package queue

import "github.com/berth-scheduler/berth/core/object"

// Listener is told what the queue does with pods, while it does it. It may not
// call the queue. A nil field is told nothing.
type Listener struct {
	// Moved: the pod came to the place because of the event, which is named as in
	// Arrival. The plugins of the entry's State are those of the last attempt.
	Moved func(e *Entry, to Place, event string)
	// Skipped: the event makes the unschedulable pod no more schedulable.
	Skipped func(p *object.Pod, event string)
}

// Listen has the queue tell the listener from now on, and nobody else.
func (q *Queue) Listen(l Listener) { q.listener = l }

func (q *Queue) tellMoved(e *Entry, to Place, event string) {
	if q.listener.Moved != nil {
		q.listener.Moved(e, to, event)
	}
}

// tellSkipped tells of the pods that an event has left where they were.
func (q *Queue) tellSkipped(event string, preCheck func(*object.Pod) bool) {
	for e := range q.heaps[Unschedulable].all() {
		if preCheck == nil || preCheck(e.Pod) {
			q.listener.Skipped(e.Pod, event)
		}
	}
}

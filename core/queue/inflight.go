package queue

import (
	"math/bits"

	"github.com/berth-scheduler/berth/core/framework"
)

// inFlightEventsKept is how many of the last events are kept whole.
const inFlightEventsKept = 256

// inFlightEvents are the events that arrived while a pod was in flight, numbered.
// The last 256 are kept whole. Of those before, it knows for each resource and
// action the number of the last one: a pod popped before that is called when
// one of its rejectors registered such events, its hint not asked. So no event is
// missed, and the memory is bounded whatever happens and however long a pod is in
// flight.
type inFlightEvents struct {
	number uint64                               // of the last event
	last   [inFlightEventsKept]*framework.Event // event n is at n % inFlightEventsKept
	old    [framework.NumEventResources][32]uint64
}

func (l *inFlightEvents) add(e *framework.Event) {
	l.number++
	at := &l.last[l.number%inFlightEventsKept]
	if *at != nil {
		for action := range single((*at).ActionType) {
			l.old[(*at).Resource][bits.TrailingZeros32(uint32(action))] = l.number - inFlightEventsKept
		}
	}
	*at = e
}

// clear drops the events: nothing is in flight. Numbers go on.
func (l *inFlightEvents) clear() { clear(l.last[:]) }

// EventsInFlight returns how many events are kept for pods in flight, by label;
// such a pod counts as one, PodPopped. Of events long past only the last of each
// kind is known, and not counted.
func (q *Queue) EventsInFlight() map[string]int {
	events := map[string]int{eventPopped: q.inFlight.len()}
	for _, e := range q.events.last {
		if e != nil {
			events[Label(e.Resource, e.ActionType)]++
		}
	}
	return events
}

// strategySincePop asks the plugins that rejected the pod about the events since its Pop,
// and returns the strongest answer.
func (q *Queue) strategySincePop(e *Entry) strategy {
	how, _ := q.hints.strategyAfterUpdate(e, e.changed, e.changes)
	if e.activated {
		how = max(how, afterBackoff)
	}
	l := &q.events
	for n := max(e.popped, l.number-min(l.number, inFlightEventsKept)) + 1; n <= l.number; n++ {
		how = max(how, q.hints.strategyFor(e, l.last[n%inFlightEventsKept]))
	}
	if e.popped+inFlightEventsKept < l.number {
		how = max(how, l.strategyForDropped(e))
	}
	return how
}

// strategyForDropped answers for the events since the pod's Pop that are not kept.
func (l *inFlightEvents) strategyForDropped(e *Entry) strategy {
	how := skip
	for _, r := range e.rejectors {
		for i := range r.plugin.events {
			switch {
			case !l.dropped(&r.plugin.events[i], e.popped):
			case r.pending:
				return immediately
			default:
				how = afterBackoff
			}
		}
	}
	return how
}

// dropped reports whether an event that matches w was dropped from the list after the
// given number. An event on any resource matches all.
func (l *inFlightEvents) dropped(w *framework.ClusterEventWithHint, after uint64) bool {
	for r := range l.old {
		resource := framework.EventResource(r)
		if w.Resource != resource && w.Resource != framework.WildCard && resource != framework.WildCard {
			continue
		}
		for bit, number := range l.old[r] {
			if number > after && (w.ActionType&(1<<bit) != 0 || resource == framework.WildCard) {
				return true
			}
		}
	}
	return false
}

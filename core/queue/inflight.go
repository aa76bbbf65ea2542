package queue

import (
	"math/bits"

	"github.com/berth-scheduler/berth/core/framework"
)

// logged is how many of the last events the log keeps whole.
const logged = 256

// log keeps the events that arrived while a pod was in flight, numbered. The
// last 256 are kept whole. Of those before, it knows for each resource and
// action the number of the last one: a pod popped before that is called when
// one of its rejectors has a rule for such events, its hint unasked. So no
// event is missed, and the memory is bounded whatever happens and however long
// a pod is in flight.
type log struct {
	number uint64                   // of the last event
	last   [logged]*framework.Event // event n is at n % logged
	old    [framework.NumEventResources][32]uint64
}

func (l *log) add(e *framework.Event) {
	l.number++
	at := &l.last[l.number%logged]
	if *at != nil {
		for action := range single((*at).ActionType) {
			l.old[(*at).Resource][bits.TrailingZeros32(uint32(action))] = l.number - logged
		}
	}
	*at = e
}

// clear drops the events: nothing is in flight. Numbers go on.
func (l *log) clear() { clear(l.last[:]) }

// EventsInFlight is how many events are kept for pods in flight, by label;
// such a pod counts as one, PodPopped. Of events long past only the last of each
// kind is known, and not counted.
func (q *Queue) EventsInFlight() map[string]int {
	events := map[string]int{eventPopped: q.inFlight}
	for _, e := range q.log.last {
		if e != nil {
			events[Label(e.Resource, e.ActionType)]++
		}
	}
	return events
}

// replay asks the pod's rejectors about all that happened since its Pop.
func (q *Queue) replay(e *entry) verdict {
	how, _ := q.askOwn(e, e.changed, e.changes)
	if e.activated {
		how = max(how, afterBackoff)
	}
	for n := max(e.popped, q.log.number-min(q.log.number, logged)) + 1; n <= q.log.number; n++ {
		how = max(how, q.ask(e, q.log.last[n%logged]))
	}
	if e.popped+logged < q.log.number {
		how = max(how, q.log.doubt(e))
	}
	return how
}

// doubt answers for the events since the pod's Pop that are not kept.
func (l *log) doubt(e *entry) verdict {
	how := sleep
	for _, r := range e.rejectors {
		for i := range r.group.rules {
			switch {
			case !l.seen(&r.group.rules[i], e.popped):
			case r.pending:
				return atOnce
			default:
				how = afterBackoff
			}
		}
	}
	return how
}

// seen tells whether an event that concerns the rule is among those not kept,
// after the given number. An event on any resource concerns every rule.
func (l *log) seen(w *framework.ClusterEventWithHint, after uint64) bool {
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

package queue

import (
	"iter"
	"maps"
	"math/bits"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// Labels of what moves pods other than events in the cluster, as in v1.37's metric
// queue_incoming_pods_total.
const (
	eventAttemptFailure       = "ScheduleAttemptFailure"
	eventBackoffComplete      = "BackoffComplete"
	eventPopFromBackoff       = "PopFromBackoffQ"
	eventActivate             = "ForceActivate"
	eventUnschedulableTimeout = "UnschedulableTimeout"
	eventReconfigured         = "Reconfigured" // not in v1.37, which cannot
	eventPopped               = "PodPopped"    // in inflight_events
	// What moves pods, and is not in the metric.
	eventDelete      = "Delete"
	eventSkipBackoff = "SkipBackoff"
)

// resourceLabels are v1.37's names of event resources, except for those that are kinds of
// API objects.
var resourceLabels = [...]string{
	framework.AssignedPod:    "AssignedPod",
	framework.UnscheduledPod: "UnscheduledPod",
	framework.TargetPod:      "TargetPod",
	framework.Node:           "Node",
	framework.Namespace:      "Namespace",
	framework.SelectorOwner:  "SelectorOwner",
	framework.HostedObject:   "Other",
	framework.WildCard:       "*",
}

// resourceLabel returns v1.37's name of the resource of an event, the first part of Label.
func resourceLabel(r framework.EventResource) string {
	if kind, ok := r.Kind(); ok {
		return kind.EventResource()
	}
	return resourceLabels[r]
}

// Label returns v1.37's name of an event, such as AssignedPodDelete or NodeAdd, for
// metrics and for what users are told of a pod's moves. Of several actions the lowest bit
// counts.
func Label(r framework.EventResource, a framework.ActionType) string {
	if a&-a == framework.UpdatePodTerminating {
		a = framework.UpdateOther // v1.37 calls both Update
	}
	return resourceLabel(r) + a.String()
}

// single returns each bit of actions as an action of its own.
func single(actions framework.ActionType) iter.Seq[framework.ActionType] {
	return func(yield func(framework.ActionType) bool) {
		for ; actions != 0; actions &= actions - 1 {
			if !yield(actions & -actions) {
				return
			}
		}
	}
}

// Changes returns how the newer state of a pod differs from the older one, as the actions
// of an event on it. UpdateOther stands alone, for a difference that is none of the others.
// 0 means that only the scheduler wrote (the condition or nomination): such a change helps
// no pod, and a pod moved by its own condition would be tried, and get a condition, without
// end. As in v1.37 a request that was removed counts as scaled down, a new one as scaled up.
func Changes(old, new *object.Pod) framework.ActionType {
	var changes framework.ActionType
	if !maps.Equal(old.Labels, new.Labels) {
		changes |= framework.UpdatePodLabel
	}
	if less(&new.Demand.Usage, &old.Demand.Usage) || less(&new.Demand.Requests, &old.Demand.Requests) {
		changes |= framework.UpdatePodScaleDown
	}
	if less(&old.Demand.Usage, &new.Demand.Usage) || less(&old.Demand.Requests, &new.Demand.Requests) {
		changes |= framework.UpdatePodScaleUp
	}
	if len(old.Gates) > 0 && len(new.Gates) == 0 {
		changes |= framework.UpdatePodSchedulingGatesEliminated
	}
	if old.Tolerations.Key != new.Tolerations.Key {
		changes |= framework.UpdatePodToleration
	}
	if !old.Terminating && new.Terminating {
		changes |= framework.UpdatePodTerminating
	}
	if !slices.Equal(old.Claims, new.Claims) {
		changes |= framework.UpdatePodGeneratedResourceClaim
	}
	if changes == 0 && !object.OnlySchedulerWrote(old, new) {
		changes = framework.UpdateOther
	}
	return changes
}

// less reports whether a is less than b in any resource.
func less(a, b *resource.Vector) bool {
	return a.MilliCPU < b.MilliCPU || a.Memory < b.Memory || a.EphemeralStorage < b.EphemeralStorage ||
		slices.ContainsFunc(b.Scalars, func(s resource.Scalar) bool { return a.Of(s.Name) < s.Value })
}

// inFlightEventsKept is how many events are kept with their objects for pods in flight, so
// that the hints can be asked when such a pod is rejected. Older ones are kept by resource
// and action only.
const inFlightEventsKept = 256

// inFlightEvents holds the events that arrived while some pod was in flight, numbered. The last 256
// are kept. Older ones are dropped, and only the number of the last one for each resource and
// action bit is kept in old: a pod popped before that event moves when one of its rejectors
// registered such events, without asking the hint. So no event is missed, and the memory is
// bounded.
type inFlightEvents struct {
	number uint64                                  // number of the last event
	calls  uint64                                  // number of calls of MoveInNamespaces so far
	last   [inFlightEventsKept]*framework.Event    // event n is at n % inFlightEventsKept
	old    [framework.NumEventResources][32]uint64 // number of the last dropped, by resource and bit
}

// add appends an event. It drops the oldest one beyond 256, and keeps its number in old.
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

// clear drops the events, when no pod is in flight any more. Numbers continue.
func (l *inFlightEvents) clear() { clear(l.last[:]) }

// EventsInFlight returns how many events are kept for pods in flight, by label, for the
// metric inflight_events. Each pod in flight counts as one more, PodPopped. Dropped events
// do not count.
func (q *Queue) EventsInFlight() map[string]int {
	events := map[string]int{eventPopped: q.inFlight.len()}
	for _, e := range q.events.last {
		if e != nil {
			events[Label(e.Resource, e.ActionType)]++
		}
	}
	return events
}

// strategySincePop returns where a pod that comes back from its attempt goes because of what
// happened since its Pop: events and updates of the pod, for which it takes the strongest answer of
// the hints of the plugins that rejected it, and Activate and MoveInNamespaces, after which it is
// at least afterBackoff.
func (q *Queue) strategySincePop(e *Entry) strategy {
	how, _ := q.hints.strategyAfterUpdate(e, e.changed, e.changes)
	if e.activated || e.calls != q.events.calls {
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

// strategyForDropped returns the strategy for the events since the pod's Pop that are dropped. If
// one of the pod's rejectors registered one of them, the pod moves: immediately if that rejector
// answered Pending, else afterBackoff.
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

// dropped reports whether an event for which w is registered, with a number above after,
// was dropped. An event on any resource matches all.
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

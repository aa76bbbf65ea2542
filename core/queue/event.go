package queue

import (
	"iter"
	"maps"
	"math/bits"
	"slices"
	"strconv"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// Labels of what moves pods and is no event in the cluster, as v1.36's metric
// queue_incoming_pods_total has them.
const (
	eventAttemptFailure       = "ScheduleAttemptFailure"
	eventBackoffComplete      = "BackoffComplete"
	eventPopFromBackoff       = "PopFromBackoffQ"
	eventActivate             = "ForceActivate"
	eventUnschedulableTimeout = "UnschedulableTimeout"
	eventReconfigured         = "Reconfigured" // not in v1.36, which cannot
	eventPopped               = "PodPopped"    // in inflight_events
	// What moves pods, and is not in the metric.
	eventDelete      = "Delete"
	eventSkipBackoff = "SkipBackoff"
)

var resourceLabels = [...]string{
	framework.AssignedPod:    "AssignedPod",
	framework.UnscheduledPod: "UnschedulablePod",
	framework.Node:           "Node",
	framework.Namespace:      "Namespace",
	framework.SelectorOwner:  "SelectorOwner",
	framework.HostedObject:   "Other",
	framework.WildCard:       "*",
}

func resourceLabel(r framework.EventResource) string {
	if kind, ok := r.Kind(); ok {
		return kind.EventResource()
	}
	return resourceLabels[r]
}

var actionLabels = map[framework.ActionType]string{
	framework.Add:                                "Add",
	framework.Delete:                             "Delete",
	framework.UpdateNodeAllocatable:              "UpdateNodeAllocatable",
	framework.UpdateNodeLabel:                    "UpdateNodeLabel",
	framework.UpdateNodeTaint:                    "UpdateNodeTaint",
	framework.UpdateNodeCondition:                "UpdateNodeCondition",
	framework.UpdateNodeAnnotation:               "UpdateNodeAnnotation",
	framework.UpdateNodeDeclaredFeature:          "UpdateNodeDeclaredFeature",
	framework.UpdatePodLabel:                     "UpdatePodLabel",
	framework.UpdatePodScaleDown:                 "UpdatePodScaleDown",
	framework.UpdatePodSchedulingGatesEliminated: "UpdatePodSchedulingGatesEliminated",
	framework.UpdatePodToleration:                "UpdatePodToleration",
	framework.UpdatePodGeneratedResourceClaim:    "UpdatePodGeneratedResourceClaim",
	framework.UpdateNamespaceLabel:               "UpdateNamespaceLabel",
	framework.UpdateSelector:                     "UpdateSelector",
	framework.UpdatePodTerminating:               "Update",
	framework.UpdateOther:                        "Update",
}

// Label returns v1.36's name of the event: AssignedPodDelete, NodeAdd. Of several actions
// the first counts.
func Label(r framework.EventResource, a framework.ActionType) string {
	if a == framework.All {
		return resourceLabel(r) + "All"
	}
	first := a & -a
	if name, ok := actionLabels[first]; ok {
		return resourceLabel(r) + name
	}
	return resourceLabel(r) + strconv.Itoa(bits.TrailingZeros32(uint32(first)))
}

// single yields the actions one by one.
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
// of an event on it. UpdateOther stands alone, for "nothing of these". 0 means that only
// the scheduler wrote: such a change helps no pod, and a pod that its own condition
// called would be tried, and get a condition, without end. Like v1.36, it treats a
// request that is gone as one scaled down.
func Changes(old, new *object.Pod) framework.ActionType {
	var changes framework.ActionType
	if !maps.Equal(old.Labels, new.Labels) {
		changes |= framework.UpdatePodLabel
	}
	if scaledDown(old.Demand.Usage, new.Demand.Usage) || scaledDown(old.Demand.Requests, new.Demand.Requests) {
		changes |= framework.UpdatePodScaleDown
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

func scaledDown(old, new resource.Vector) bool {
	if new.MilliCPU < old.MilliCPU || new.Memory < old.Memory || new.EphemeralStorage < old.EphemeralStorage {
		return true
	}
	for _, s := range old.Scalars {
		if new.Of(s.Name) < s.Value {
			return true
		}
	}
	return false
}

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

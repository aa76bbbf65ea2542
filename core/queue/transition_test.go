package queue

import (
	"maps"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// transition is a way from place to place, and the label under which the pod's
// arrival is counted, "" where that is no matter.
type transition struct {
	name         string
	given, when  func(*bench)
	want         Place
	queue, event string
}

const s = time.Second

var every = &framework.Event{Resource: framework.WildCard, ActionType: framework.All}

func active(b *bench)   { b.Add(start, pod("p")) }
func inFlight(b *bench) { active(b); b.pop(start, "p") }
func atGate(b *bench)   { b.Add(start, pod("p", gated)) }
func atDoor(b *bench)   { b.door.closed = true; b.Add(start, pod("p", app("door"))) }
func lost(b *bench)     { b.door.closed = true; b.Add(start, pod("p", app("lost"))) }
func activate(b *bench) { b.Activate(start, uid("p"), "no such pod") }

func backoffed(b *bench) {
	inFlight(b)
	b.Move(start, on(framework.Add))
	b.Requeue(start, uid("p"), by("Room"))
}

func requeued(o outcome) func(*bench) {
	return func(b *bench) { inFlight(b); b.Requeue(start, uid("p"), o) }
}

func requeuedAs(o outcome, change ...func(*object.Pod)) func(*bench) {
	return func(b *bench) {
		b.Add(start, pod("p", change...))
		b.pop(start, "p")
		b.Requeue(start, uid("p"), o)
	}
}

func move(d time.Duration, e *framework.Event) func(*bench) {
	return func(b *bench) { b.Move(at(d), e) }
}

func update(d time.Duration, change ...func(*object.Pod)) func(*bench) {
	return func(b *bench) { b.Update(at(d), pod("p", change...)) }
}

func flush(d time.Duration) func(*bench) { return func(b *bench) { b.Flush(at(d)) } }

func open(then func(*bench)) func(*bench) {
	return func(b *bench) { b.door.closed = false; then(b) }
}

// A new, active or in-flight pod goes where the event or the attempt's outcome sends
// it.
func TestReadyPods(t *testing.T) {
	check(t, []transition{
		{"a pod comes", func(*bench) {}, active, Active, "active", "UnscheduledPodAdd"},
		{"it comes again", active, active, Active, "", ""},
		{"a gated pod comes", func(*bench) {}, atGate, Gated, "unschedulable", "UnscheduledPodAdd"},
		{"an active pod changes", active, update(0, tolerant), Active, "", ""},
		{"an active pod is activated", active, activate, Active, "", ""},
		{"an active pod is requeued", active, func(b *bench) { b.Requeue(start, uid("p"), by("Room")) }, Active, "", ""},

		{"rejected", inFlight, func(b *bench) { b.Requeue(start, uid("p"), by("Room")) }, Unschedulable, "unschedulable", "ScheduleAttemptFailure"},
		{"rejected after something helped", inFlight, func(b *bench) { b.Move(start, on(framework.Add)); b.Requeue(start, uid("p"), by("Room")) },
			Backoff, "backoff", "ScheduleAttemptFailure"},
		{"pending after something helped", inFlight, func(b *bench) { b.Move(start, on(framework.Add)); b.Requeue(start, uid("p"), pendingBy("Room")) },
			Active, "active", "ScheduleAttemptFailure"},
		{"rejected after something else", inFlight, func(b *bench) { b.Move(start, on(framework.UpdateNodeTaint)); b.Requeue(start, uid("p"), by("Room")) },
			Unschedulable, "", ""},
		{"rejected after its own change helped", inFlight, func(b *bench) { b.Update(start, pod("p", tolerant)); b.Requeue(start, uid("p"), by("Taints")) },
			Backoff, "", ""},
		{"rejected after activation", inFlight, func(b *bench) { activate(b); b.Requeue(start, uid("p"), by("Deaf")) }, Backoff, "", ""},
		{"rejected after it was gated", inFlight, func(b *bench) { b.Update(start, pod("p", gated)); b.Requeue(start, uid("p"), outcome{}) },
			Gated, "unschedulable", "ScheduleAttemptFailure"},
		{"failed", inFlight, func(b *bench) { b.Requeue(start, uid("p"), outcome{}) }, ErrorBackoff, "backoff", "ScheduleAttemptFailure"},
		{"rejected by no one known", inFlight, func(b *bench) { b.Requeue(start, uid("p"), by("Room", "")) }, ErrorBackoff, "backoff", "ScheduleAttemptFailure"},
		{"done", inFlight, func(b *bench) { b.Delete(uid("p")) }, Nowhere, "", ""},
		{"deleted in flight, then requeued", inFlight, func(b *bench) { b.Delete(uid("p")); b.Requeue(start, uid("p"), by("Room")) }, Nowhere, "", ""},
	})
}

// An unschedulable pod is requeued by events that a plugin's hint wants, activation,
// and five minutes' time.
func TestUnschedulablePods(t *testing.T) {
	check(t, []transition{
		{"called while backing off", requeued(by("Room")), move(0, on(framework.Add)), Backoff, "backoff", "NodeAdd"},
		{"called after backoff", requeued(by("Room")), move(2*s, on(framework.Add)), Active, "active", "NodeAdd"},
		{"called by one of two", requeued(by("Deaf", "Taints")), move(2*s, on(framework.UpdateNodeTaint)), Active, "active", "NodeUpdateNodeTaint"},
		{"called by a pending plugin", requeued(pendingBy("Claims")), move(0, on(framework.UpdateNodeAnnotation)), Active, "active", "NodeUpdateNodeAnnotation"},
		{"called by the one that is not pending", requeued(outcome{rejectedBy: []string{"Room"}, pendingBy: []string{"Claims"}}), move(0, on(framework.Add)), Backoff, "", ""},
		{"called by both", requeued(outcome{rejectedBy: []string{"Room"}, pendingBy: []string{"Taints"}}), move(0, on(framework.Add)), Active, "", ""},
		{"pending and rejected by the same", requeued(outcome{rejectedBy: []string{"Room"}, pendingBy: []string{"Room"}}), move(0, on(framework.Add)), Active, "", ""},
		{"a rule for any resource", requeued(by("Any")), move(2*s, on(framework.UpdateNodeLabel)), Active, "active", "NodeUpdateNodeLabel"},
		{"the hint says yes", requeued(by("Room")), move(2*s, gone(pod("x"))), Active, "active", "AssignedPodDelete"},
		{"the hint says no", requeued(by("Room")), move(2*s, gone(pod("x", app("other")))), Unschedulable, "", ""},
		{"the hint panics", requeued(by("Broken")), move(2*s, on(framework.UpdateNodeCondition)), Active, "", ""},
		{"no rule", requeued(by("Deaf")), move(2*s, on(framework.All)), Unschedulable, "", ""},
		{"all are called", requeued(by("Deaf")), move(2*s, every), Active, "active", "*All"},
		{"all are called, pending or not", requeued(pendingBy("Deaf")), move(0, every), Backoff, "backoff", "*All"},
		{"of at most its priority", requeued(by("Room")), func(b *bench) { b.MoveUpTo(at(2*s), on(framework.Add), 0) }, Active, "", ""},
		{"of less than its priority", requeued(by("Room")), func(b *bench) { b.MoveUpTo(at(2*s), on(framework.Add), -1) }, Unschedulable, "", ""},

		{"an unschedulable pod's change helps", requeued(by("Taints")), update(2*s, tolerant), Active, "active", "TargetPodUpdatePodToleration"},
		{"it helps while backing off", requeued(by("Taints")), update(0, tolerant), Backoff, "backoff", "TargetPodUpdatePodToleration"},
		{"it does not help", requeued(by("Room")), update(2*s, tolerant), Unschedulable, "", ""},
		{"one change helps, another a pending plugin", requeued(outcome{rejectedBy: []string{"Any"}, pendingBy: []string{"Taints"}}), update(0, app("x"), tolerant),
			Active, "active", "TargetPodUpdatePodToleration"},
		{"another pod's change does not", func(b *bench) { requeued(by("Labels"))(b); b.Add(start, pod("q")) }, func(b *bench) { b.Update(at(2*s), pod("q", app("a"))) }, Unschedulable, "", ""},
		{"only the scheduler wrote, and its plugin asks for all events", requeuedAs(by("Curious"), stated("full")), update(0, stated("too full")), Unschedulable, "", ""},
		{"an annotation came with it", requeuedAs(by("Curious"), stated("full")), update(0, stated("too full", annotated)), Backoff, "backoff", "TargetPodUpdate"},
		{"its change helps and gates it", requeued(by("Taints")), update(2*s, tolerant, gated), Gated, "unschedulable", "TargetPodUpdatePodToleration"},
		{"activated", requeued(by("Room")), activate, Active, "active", "ForceActivate"},
		{"left alone for less than five minutes", requeued(by("Deaf")), flush(5*time.Minute - 1), Unschedulable, "", ""},
		{"left alone for five minutes", requeued(by("Deaf")), flush(5 * time.Minute), Active, "active", "UnschedulableTimeout"},
	})
}

// Activation ends a pod's backoff, and a gated pod stays until its gate is open.
func TestPodsInBackoffAndGatedPods(t *testing.T) {
	check(t, []transition{
		{"a pod in backoff changes", backoffed, update(0, tolerant), Backoff, "", ""},
		{"it is activated", backoffed, activate, Active, "active", "ForceActivate"},
		{"one in error backoff is activated", requeued(outcome{}), activate, Active, "active", "ForceActivate"},
		{"nothing calls a pod in error backoff", requeued(outcome{}), move(0, every), ErrorBackoff, "", ""},

		{"the gates are gone", atGate, update(0), Active, "active", "TargetPodUpdatePodSchedulingGatesEliminated"},
		{"another change of a gated pod", atGate, update(0, gated, tolerant), Gated, "", ""},
		{"an event opens the door", atDoor, open(move(0, on(framework.UpdateNodeAllocatable))), Active, "active", "NodeUpdateNodeAllocatable"},
		{"an event does not open it", atDoor, move(0, on(framework.UpdateNodeAllocatable)), Gated, "", ""},
		{"another event is not for the door", atDoor, open(move(0, on(framework.Add))), Gated, "", ""},
		{"the door opens unheard", atDoor, open(flush(5 * time.Minute)), Active, "active", "UnschedulableTimeout"},
		{"a gate of no one known", lost, open(move(0, on(framework.All))), Gated, "", ""},
		{"all are called, that one too", lost, open(move(0, every)), Active, "", ""},
		{"it opens unheard", lost, open(flush(5 * time.Minute)), Active, "", ""},
		{"gated and activated", atGate, activate, Gated, "", ""},
		{"open and activated", atDoor, open(activate), Active, "active", "ForceActivate"},
	})
}

func check(t *testing.T, table []transition) {
	t.Helper()
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			c.given(b)
			from, old := b.Where(uid("p")), b.Arrivals()
			c.when(b)
			b.want("p", c.want)
			if c.event != "" {
				if now := b.Arrivals(); arrived(now, c.queue, c.event) != arrived(old, c.queue, c.event)+1 {
					t.Errorf("no arrival in %s by %s: %v", c.queue, c.event, now)
				}
			}
			if from == c.want && !maps.Equal(old, b.Arrivals()) {
				t.Errorf("a pod that stays is counted: %v, then %v", old, b.Arrivals())
			}
		})
	}
}

// kube-scheduler counts a pod in queue_incoming_entities_total unless it comes to the queue
// that the strategy names: not each failed attempt, and not each pod that an event calls.
func TestHintedArrivals(t *testing.T) {
	for _, c := range []struct {
		name        string
		given, when func(*bench)
		want        Arrival
	}{
		{"a pod comes", func(*bench) {}, active, Arrival{"active", "UnscheduledPodAdd", false, PodAlone}},
		{"a gated pod comes", func(*bench) {}, atGate, Arrival{"unschedulable", "UnscheduledPodAdd", false, PodAlone}},
		{"rejected", inFlight, func(b *bench) { b.Requeue(start, uid("p"), by("Room")) }, Arrival{"unschedulable", "ScheduleAttemptFailure", true, PodAlone}},
		{"rejected after something helped", func(*bench) {}, backoffed, Arrival{"backoff", "ScheduleAttemptFailure", true, PodAlone}},
		{"failed", inFlight, func(b *bench) { b.Requeue(start, uid("p"), outcome{}) }, Arrival{"backoff", "ScheduleAttemptFailure", true, PodAlone}},
		{"failed and gated", inFlight, func(b *bench) { b.Update(start, pod("p", gated)); b.Requeue(start, uid("p"), outcome{}) }, Arrival{"unschedulable", "ScheduleAttemptFailure", false, PodAlone}},
		{"called while backing off", requeued(by("Room")), move(0, on(framework.Add)), Arrival{"backoff", "NodeAdd", true, PodAlone}},
		{"called after backoff", requeued(by("Room")), move(2*s, on(framework.Add)), Arrival{"active", "NodeAdd", false, PodAlone}},
		{"called by a pending plugin", requeued(pendingBy("Room")), move(0, on(framework.Add)), Arrival{"active", "NodeAdd", true, PodAlone}},
		{"called and gated", requeued(by("Taints")), update(2*s, tolerant, gated), Arrival{"unschedulable", "TargetPodUpdatePodToleration", false, PodAlone}},
		{"activated", requeued(by("Room")), activate, Arrival{"active", "ForceActivate", false, PodAlone}},
		{"left alone for five minutes", requeued(by("Deaf")), flush(5 * time.Minute), Arrival{"active", "UnschedulableTimeout", false, PodAlone}},
		{"its backoff ends", requeued(outcome{}), flush(time.Minute), Arrival{"active", "BackoffComplete", false, PodAlone}},
		{"popped from backoff", backoffed, func(b *bench) { b.pop(start, "p") }, Arrival{"active", "PopFromBackoffQ", false, PodAlone}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			c.given(b)
			old := b.Arrivals()[c.want]
			c.when(b)
			if got := b.Arrivals(); got[c.want] != old+1 {
				t.Errorf("got %v, want one of %v", got, c.want)
			}
		})
	}
}

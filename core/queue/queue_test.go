package queue

import (
	"slices"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// Each way from place to place, and the label under which it is counted.
func TestTransitions(t *testing.T) {
	const s = time.Second
	active := func(b *bench) { b.Add(start, pod("p")) }
	inFlight := func(b *bench) { active(b); b.pop(start, "p") }
	parked := func(o Outcome) func(*bench) {
		return func(b *bench) { inFlight(b); b.Park(start, uid("p"), o) }
	}
	backoff := func(b *bench) { inFlight(b); b.Move(start, on(framework.Add)); b.Park(start, uid("p"), by("Room")) }
	atGate := func(b *bench) { b.Add(start, pod("p", gated)) }
	atDoor := func(b *bench) { b.door.closed = true; b.Add(start, pod("p", app("door"))) }
	lost := func(b *bench) { b.door.closed = true; b.Add(start, pod("p", app("lost"))) }
	move := func(d time.Duration, e *framework.Event) func(*bench) {
		return func(b *bench) { b.Move(at(d), e) }
	}
	update := func(d time.Duration, change ...func(*object.Pod)) func(*bench) {
		return func(b *bench) { b.Update(at(d), pod("p", change...)) }
	}
	flush := func(d time.Duration) func(*bench) { return func(b *bench) { b.Flush(at(d)) } }
	activate := func(b *bench) { b.Activate(start, uid("p"), "no such pod") }
	open := func(then func(*bench)) func(*bench) {
		return func(b *bench) { b.door.closed = false; then(b) }
	}
	every := &framework.Event{Resource: framework.AnyResource, Action: framework.All}

	for _, c := range []struct {
		name         string
		given, when  func(*bench)
		want         Place
		queue, event string // "": not counted
	}{
		{"a pod comes", func(*bench) {}, active, Active, "active", "UnschedulablePodAdd"},
		{"it comes again", active, active, Active, "", ""},
		{"a gated pod comes", func(*bench) {}, atGate, Gated, "unschedulable", "UnschedulablePodAdd"},
		{"an unknown pod changes", func(*bench) {}, update(0), Active, "active", "UnschedulablePodUpdate"},
		{"an active pod changes", active, update(0, tolerant), Active, "", ""},
		{"an active pod is activated", active, activate, Active, "", ""},
		{"an active pod is parked", active, func(b *bench) { b.Park(start, uid("p"), by("Room")) }, Active, "", ""},
		{"an active pod is done", active, func(b *bench) { b.Done(uid("p")) }, Active, "", ""},

		{"rejected", inFlight, func(b *bench) { b.Park(start, uid("p"), by("Room")) }, Unschedulable, "unschedulable", "ScheduleAttemptFailure"},
		{"rejected after something helped", inFlight, func(b *bench) { b.Move(start, on(framework.Add)); b.Park(start, uid("p"), by("Room")) },
			Backoff, "backoff", "ScheduleAttemptFailure"},
		{"pending after something helped", inFlight, func(b *bench) { b.Move(start, on(framework.Add)); b.Park(start, uid("p"), pendingBy("Room")) },
			Active, "active", "ScheduleAttemptFailure"},
		{"rejected after something else", inFlight, func(b *bench) { b.Move(start, on(framework.UpdateNodeTaint)); b.Park(start, uid("p"), by("Room")) },
			Unschedulable, "", ""},
		{"rejected after its own change helped", inFlight, func(b *bench) { b.Update(start, pod("p", tolerant)); b.Park(start, uid("p"), by("Taints")) },
			Backoff, "", ""},
		{"rejected after activation", inFlight, func(b *bench) { activate(b); b.Park(start, uid("p"), by("Deaf")) }, Backoff, "", ""},
		{"rejected after it was gated", inFlight, func(b *bench) { b.Update(start, pod("p", gated)); b.Park(start, uid("p"), Outcome{}) },
			Gated, "unschedulable", "ScheduleAttemptFailure"},
		{"failed", inFlight, func(b *bench) { b.Park(start, uid("p"), Outcome{}) }, ErrorBackoff, "backoff", "ScheduleAttemptFailure"},
		{"rejected by no one known", inFlight, func(b *bench) { b.Park(start, uid("p"), by("Room", "")) }, ErrorBackoff, "backoff", "ScheduleAttemptFailure"},
		{"done", inFlight, func(b *bench) { b.Done(uid("p")) }, Nowhere, "", ""},
		{"deleted in flight, then parked", inFlight, func(b *bench) { b.Delete(uid("p")); b.Park(start, uid("p"), by("Room")) }, Nowhere, "", ""},

		{"called while backing off", parked(by("Room")), move(0, on(framework.Add)), Backoff, "backoff", "NodeAdd"},
		{"called after backoff", parked(by("Room")), move(2*s, on(framework.Add)), Active, "active", "NodeAdd"},
		{"called by one of two", parked(by("Deaf", "Taints")), move(2*s, on(framework.UpdateNodeTaint)), Active, "active", "NodeUpdateNodeTaint"},
		{"called by a pending plugin", parked(pendingBy("Claims")), move(0, on(framework.UpdateNodeAnnotation)), Active, "active", "NodeUpdateNodeAnnotation"},
		{"called by the one that is not pending", parked(Outcome{RejectedBy: []string{"Room"}, PendingBy: []string{"Claims"}}), move(0, on(framework.Add)), Backoff, "", ""},
		{"called by both", parked(Outcome{RejectedBy: []string{"Room"}, PendingBy: []string{"Taints"}}), move(0, on(framework.Add)), Active, "", ""},
		{"pending and rejected by the same", parked(Outcome{RejectedBy: []string{"Room"}, PendingBy: []string{"Room"}}), move(0, on(framework.Add)), Active, "", ""},
		{"a rule for any resource", parked(by("Any")), move(2*s, on(framework.UpdateNodeLabel)), Active, "active", "NodeUpdateNodeLabel"},
		{"the hint says yes", parked(by("Room")), move(2*s, gone(pod("x"))), Active, "active", "AssignedPodDelete"},
		{"the hint says no", parked(by("Room")), move(2*s, gone(pod("x", app("other")))), Unschedulable, "", ""},
		{"the hint panics", parked(by("Broken")), move(2*s, on(framework.UpdateNodeCondition)), Active, "", ""},
		{"no rule", parked(by("Deaf")), move(2*s, on(framework.All)), Unschedulable, "", ""},
		{"all are called", parked(by("Deaf")), move(2*s, every), Active, "active", "*All"},
		{"all are called, pending or not", parked(pendingBy("Deaf")), move(0, every), Backoff, "backoff", "*All"},
		{"of at most its priority", parked(by("Room")), func(b *bench) { b.MoveUpTo(at(2*s), on(framework.Add), 0) }, Active, "", ""},
		{"of less than its priority", parked(by("Room")), func(b *bench) { b.MoveUpTo(at(2*s), on(framework.Add), -1) }, Unschedulable, "", ""},

		{"an unschedulable pod's change helps", parked(by("Taints")), update(2*s, tolerant), Active, "active", "UnschedulablePodUpdatePodToleration"},
		{"it helps while backing off", parked(by("Taints")), update(0, tolerant), Backoff, "backoff", "UnschedulablePodUpdatePodToleration"},
		{"it does not help", parked(by("Room")), update(2*s, tolerant), Unschedulable, "", ""},
		{"another pod's change does not", parked(by("Labels")), func(b *bench) { b.Update(at(2*s), pod("q", app("a"))) }, Unschedulable, "", ""},
		{"its change helps and gates it", parked(by("Taints")), update(2*s, tolerant, gated), Gated, "unschedulable", "UnschedulablePodUpdatePodToleration"},
		{"activated", parked(by("Room")), activate, Active, "active", "ForceActivate"},
		{"left alone for less than five minutes", parked(by("Deaf")), flush(5*time.Minute - 1), Unschedulable, "", ""},
		{"left alone for five minutes", parked(by("Deaf")), flush(5 * time.Minute), Active, "active", "UnschedulableTimeout"},

		{"a pod in backoff changes", backoff, update(0, tolerant), Backoff, "", ""},
		{"it is activated", backoff, activate, Active, "active", "ForceActivate"},
		{"one in error backoff is activated", parked(Outcome{}), activate, Active, "active", "ForceActivate"},
		{"nothing calls a pod in error backoff", parked(Outcome{}), move(0, every), ErrorBackoff, "", ""},

		{"the gates are gone", atGate, update(0), Active, "active", "UnschedulablePodUpdatePodSchedulingGatesEliminated"},
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
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			c.given(b)
			old := b.Arrivals()
			c.when(b)
			b.want("p", c.want)
			if c.event != "" {
				if a := (Arrival{c.queue, c.event}); b.Arrivals()[a] != old[a]+1 {
					t.Errorf("no arrival by %v: %v", a, b.Arrivals())
				}
			}
		})
	}
}

// Wherever the pod is, Delete leaves nothing of it.
func TestDeleteEverywhere(t *testing.T) {
	for _, c := range []struct {
		name  string
		bring func(b *bench)
	}{
		{"active", func(*bench) {}},
		{"backoff", func(b *bench) {
			b.pop(start, "p")
			b.Move(start, on(framework.Add))
			b.Park(start, uid("p"), by("Room"))
		}},
		{"error backoff", func(b *bench) { b.reject(start, "p", Outcome{}) }},
		{"unschedulable", func(b *bench) { b.reject(start, "p", by("Room", "Taints")) }},
		{"gated", func(b *bench) { b.reject(start, "p", by("Taints")); b.Update(start, pod("p", tolerant, gated)) }},
		{"in flight", func(b *bench) { b.pop(start, "p") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.Add(start, pod("p"))
			b.Nominate(uid("p"), "n")
			c.bring(b)
			if got := b.Where(uid("p")).String(); got != c.name {
				t.Fatalf("the pod is %s", got)
			}
			if !b.Delete(uid("p")) || b.Delete(uid("p")) {
				t.Error("Delete did not say that it was there, or says so again")
			}
			b.want("p", Nowhere)
			b.Move(start, on(framework.Add))
			b.Flush(at(time.Hour))
			if b.Counts() != (Counts{}) || len(b.NominatedNodes()) != 0 || b.String() != "" {
				t.Errorf("something is left: %+v %v\n%s", b.Counts(), b.NominatedNodes(), b)
			}
			if next, ok := b.NextTimer(); ok {
				t.Errorf("a timer is left: %v", next)
			}
		})
	}
}

func TestPopGivesTheHistory(t *testing.T) {
	b := newBench(t)
	b.door.closed = true
	b.Add(start, pod("p", app("door")))
	b.door.closed = false
	b.Move(at(time.Minute), on(framework.UpdateNodeAllocatable))
	a := b.pop(at(2*time.Minute), "p")
	if a.Number != 1 || !a.Queued.Equal(start) || !a.First.Equal(at(time.Minute)) || a.Flushed {
		t.Errorf("first attempt: %+v", a)
	}
	b.Update(at(3*time.Minute), pod("p", tolerant))
	b.Park(at(3*time.Minute), uid("p"), by("Room"))
	b.Flush(at(8 * time.Minute))
	a = b.pop(at(9*time.Minute), "p")
	if a.Number != 2 || !a.Queued.Equal(at(3*time.Minute)) || !a.First.Equal(at(time.Minute)) || !a.Flushed || a.Pod.Tolerations.Key != "t" {
		t.Errorf("second attempt: %+v", a)
	}
	b.Park(at(9*time.Minute), uid("p"), by("Room"))
	b.Move(at(10*time.Minute), on(framework.Add))
	if a = b.pop(at(11*time.Minute), "p"); a.Number != 3 || a.Flushed {
		t.Errorf("third attempt: %+v", a)
	}
}

// One that was tried and failed goes behind its equals.
func TestFailureGoesToTheBack(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"a", "b", "c"} {
		b.Add(start, pod(name))
	}
	b.Add(start, pod("high", priority(1)))
	b.reject(start, "high", by("Room"))
	b.reject(start, "a", by("Room"))
	b.Move(at(2*time.Second), on(framework.Add))
	for _, name := range []string{"high", "b", "c", "a"} {
		b.pop(at(2*time.Second), name)
	}
}

func TestUpdateMovesInTheOrder(t *testing.T) {
	b := newBench(t)
	b.Add(start, pod("a"))
	b.Add(start, pod("b"))
	b.Update(start, pod("b", priority(1)))
	b.want("b", Active)
	b.pop(start, "b")
	b.pop(start, "a")
}

func TestSameNameOtherPod(t *testing.T) {
	b := newBench(t)
	b.Add(start, pod("p"))
	b.reject(start, "p", by("Room"))
	next := pod("p", func(p *object.Pod) { p.UID = "other" })
	b.Add(start, next)
	if b.Where("other") != Active {
		t.Error("the new pod is not active")
	}
	b.want("p", Unschedulable)
	b.Delete(uid("p"))
	if a := b.pop(start, "p"); a.Pod != next {
		t.Error("not the new pod")
	}
}

func TestTimers(t *testing.T) {
	b := newBench(t)
	if _, ok := b.NextTimer(); ok {
		t.Error("an empty queue has a timer")
	}
	b.Add(start, pod("active"))
	b.pop(start, "active")
	if _, ok := b.NextTimer(); ok {
		t.Error("a pod in flight has a timer")
	}
	b.Add(start, pod("gated", gated))
	b.wantTimer(at(5 * time.Minute))
	b.Flush(at(5 * time.Minute))
	b.want("gated", Gated)
	b.wantTimer(at(10 * time.Minute))
	b.Park(at(6*time.Minute), uid("active"), by("Room"))
	b.wantTimer(at(10 * time.Minute))
	b.Delete(uid("gated"))
	b.wantTimer(at(11 * time.Minute))
}

func TestReady(t *testing.T) {
	b := newBench(t)
	steps := []struct {
		do    func()
		ready bool
	}{
		{func() {}, false},
		{func() { b.Add(start, pod("p")) }, true},
		{func() { b.reject(start, "p", Outcome{}) }, false},
		{func() { b.Add(start, pod("q")); b.pop(start, "q"); b.Activate(start, uid("q")) }, false},
		{func() { b.Park(start, uid("q"), by("Room")) }, true},
	}
	for i, s := range steps {
		s.do()
		if b.Ready() != s.ready {
			t.Errorf("step %d: ready is %v", i, !s.ready)
		}
	}
}

func TestNominations(t *testing.T) {
	b := newBench(t)
	b.Add(start, pod("low"))
	b.Add(start, pod("high", priority(9)))
	b.Add(start, pod("api", nominated("n1")))
	b.Add(start, pod("gated", gated, nominated("n1")))
	b.Nominate(uid("low"), "n1")
	b.Nominate(uid("high"), "n1")
	b.Nominate("no such pod", "n1")
	wantTo := func(node string, want ...string) {
		t.Helper()
		if err := b.Check(); err != nil {
			t.Fatal(err)
		}
		if got := names(b.NominatedTo(node)); !slices.Equal(got, want) {
			t.Errorf("nominated to %s: %v, want %v", node, got, want)
		}
	}
	wantTo("n1", "high", "api", "low")
	before := b.NominatedTo("n1")
	b.Nominate(uid("low"), "n2")
	wantTo("n1", "high", "api")
	wantTo("n2", "low")
	if got := names(before); !slices.Equal(got, []string{"high", "api", "low"}) {
		t.Errorf("the list handed out has changed: %v", got)
	}
	if !slices.Equal(b.NominatedNodes(), []string{"n1", "n2"}) {
		t.Errorf("nodes: %v", b.NominatedNodes())
	}
	newer := pod("high", priority(9), tolerant)
	b.Update(start, newer) // the API has not heard of the nomination
	wantTo("n1", "high", "api")
	if b.NominatedTo("n1")[0] != newer {
		t.Error("the nominated pod is an old one")
	}
	b.Update(start, pod("api")) // the API withdrew it
	wantTo("n1", "high")
	b.Update(start, pod("low", nominated("n3")))
	wantTo("n3", "low")
	b.Unnominate(uid("low"))
	b.Nominate(uid("high"), "")
	wantTo("n1")
	if len(b.NominatedNodes()) != 0 || b.NominatedNode(uid("low")) != "" || b.NominatedNode("nobody") != "" {
		t.Errorf("nominations are left: %v", b.NominatedNodes())
	}
	b.pop(start, "high")
	b.Update(start, pod("high", nominated("n4"))) // in flight: it may be assumed already
	wantTo("n4")
}

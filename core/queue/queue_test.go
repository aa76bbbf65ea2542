package queue

import (
	"slices"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

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
			b.Requeue(start, uid("p"), by("Room"))
		}},
		{"error backoff", func(b *bench) { b.reject(start, "p", outcome{}) }},
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

// A popped pod carries its attempts, its timestamps, whether a timeout flushed it, and
// its newest spec.
func TestPopGivesTheHistory(t *testing.T) {
	b := newBench(t)
	b.door.closed = true
	b.Add(start, pod("p", app("door")))
	b.door.closed = false
	b.Move(at(time.Minute), on(framework.UpdateNodeAllocatable))
	a := b.pop(at(2*time.Minute), "p")
	if a.Attempts() != 1 || !a.Timestamp.Equal(start) || !a.FirstActive.Equal(at(time.Minute)) || a.Flushed() {
		t.Errorf("first attempt: %+v", a)
	}
	b.Update(at(3*time.Minute), pod("p", tolerant))
	b.Requeue(at(3*time.Minute), uid("p"), by("Room"))
	b.Flush(at(8 * time.Minute))
	a = b.pop(at(9*time.Minute), "p")
	if a.Attempts() != 2 || !a.Timestamp.Equal(at(3*time.Minute)) || !a.FirstActive.Equal(at(time.Minute)) || !a.Flushed() || a.Pod.Tolerations.Key != "t" {
		t.Errorf("second attempt: %+v", a)
	}
	b.Requeue(at(9*time.Minute), uid("p"), by("Room"))
	b.Move(at(10*time.Minute), on(framework.Add))
	if a = b.pop(at(11*time.Minute), "p"); a.Attempts() != 3 || a.Flushed() {
		t.Errorf("third attempt: %+v", a)
	}
}

// A look at a gated pod that leaves it gated does not count as a flush.
func TestFlushOfGatedPods(t *testing.T) {
	b := newBench(t)
	b.door.closed = true
	b.Add(start, pod("called", app("door")))
	b.Add(start, pod("unheard", app("lost")))
	b.Flush(at(5 * time.Minute))
	b.door.closed = false
	b.Move(at(6*time.Minute), on(framework.UpdateNodeAllocatable))
	if a := b.pop(at(6*time.Minute), "called"); a.Flushed() {
		t.Error("the pod counts as flushed, though an event called it")
	}
	b.Flush(at(10 * time.Minute))
	if a := b.pop(at(10*time.Minute), "unheard"); !a.Flushed() {
		t.Error("the pod does not count as flushed, though nothing called it")
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

// An active pod whose priority rises moves forward.
func TestUpdateMovesInTheOrder(t *testing.T) {
	b := newBench(t)
	b.Add(start, pod("a"))
	b.Add(start, pod("b"))
	b.Update(start, pod("b", priority(1)))
	b.want("b", Active)
	b.pop(start, "b")
	b.pop(start, "a")
}

// A pod of the same name with another UID is another pod.
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

// The next timer is that of the pod that leaves its place first; active pods and pods
// in flight have none.
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
	b.Requeue(at(6*time.Minute), uid("active"), by("Room"))
	b.wantTimer(at(10 * time.Minute))
	b.Delete(uid("gated"))
	b.wantTimer(at(11 * time.Minute))
}

// The queue is ready when a pod may be popped.
func TestReady(t *testing.T) {
	b := newBench(t)
	steps := []struct {
		do    func()
		ready bool
	}{
		{func() {}, false},
		{func() { b.Add(start, pod("p")) }, true},
		{func() { b.reject(start, "p", outcome{}) }, false},
		{func() { b.Add(start, pod("q")); b.pop(start, "q"); b.Activate(start, uid("q")) }, false},
		{func() { b.Requeue(start, uid("q"), by("Room")) }, true},
	}
	for i, s := range steps {
		s.do()
		if b.Ready() != s.ready {
			t.Errorf("step %d: ready is %v", i, !s.ready)
		}
	}
}

// A node's nominated pods are listed by priority, and follow every change of a pod and
// its nomination.
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
	wantTo("n1", "high", "api", "gated", "low")
	before := b.NominatedTo("n1")
	b.Nominate(uid("low"), "n2")
	wantTo("n1", "high", "api", "gated")
	wantTo("n2", "low")
	if got := names(before); !slices.Equal(got, []string{"high", "api", "gated", "low"}) {
		t.Errorf("the list handed out has changed: %v", got)
	}
	if !slices.Equal(b.NominatedNodes(), []string{"n1", "n2"}) {
		t.Errorf("nodes: %v", b.NominatedNodes())
	}
	newer := pod("high", priority(9), tolerant)
	b.Update(start, newer) // the API has not heard of the nomination
	wantTo("n1", "high", "api", "gated")
	if b.NominatedTo("n1")[0] != newer {
		t.Error("the nominated pod is an old one")
	}
	b.Update(start, pod("api")) // the API withdrew it
	wantTo("n1", "high", "gated")
	b.Update(start, pod("gated", gated))
	wantTo("n1", "high")
	b.Update(start, pod("low", nominated("n3")))
	wantTo("n3", "low")
	b.Nominate(uid("low"), "")
	b.Nominate(uid("high"), "")
	wantTo("n1")
	if len(b.NominatedNodes()) != 0 || b.NominatedNode(uid("low")) != "" || b.NominatedNode("nobody") != "" {
		t.Errorf("nominations are left: %v", b.NominatedNodes())
	}
	b.pop(start, "high")
	b.Update(start, pod("high", nominated("n4"))) // in flight: it may be assumed already
	wantTo("n4")
}

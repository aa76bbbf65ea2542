package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/queue"
)

// interrupt does what a step did before it panicked, and repairs the machine.
func (s *story) interrupt(half func(m *Machine)) {
	s.T.Helper()
	for _, m := range []*Machine{s.m, s.twin} {
		m.now = s.now
		half(m)
		effects := m.Repair()
		if err := m.Verify(); err != nil {
			s.T.Fatal(err)
		}
		if m == s.m {
			s.effects = effects
		}
	}
	for i, effect := range s.effects {
		s.take(i, effect)
	}
}

// A step that panics in the middle leaves the machine whole, and loses nothing
// that it had asked for; given the event again, the machine ends up where it
// would have been.
func TestRepair(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 30)
	s.given(s.node("n", 40), p)
	popped := func(m *Machine) *attempt {
		e := m.queue.Pop(m.now)
		if e == nil {
			t.Fatal("no pod is ready")
		}
		return m.attempts.start(m.pods.byUID[e.Pod.UID])
	}
	assume := func(m *Machine) *bindingCycle {
		row, _ := m.table.Find("n")
		return m.bindings.assume(popped(m), row)
	}

	s.interrupt(func(m *Machine) { popped(m) })
	s.did()
	s.where(p, queue.ErrorBackoff)
	s.tick(10 * time.Second)

	s.interrupt(func(m *Machine) { // assumed, and not in a binding cycle yet
		a := popped(m)
		m.table.AddPod(a.pod, "n")
		m.pods.setAssumed(a.state, true)
	})
	s.did()
	s.where(p, queue.ErrorBackoff)
	s.used(0)
	s.tick(10 * time.Second)

	s.interrupt(func(m *Machine) { assume(m) }) // it asked for no binding yet
	s.did("AttemptDone p-1: Scheduled", "AttemptDone p-1: Error", "PublishEvent p-1 FailedScheduling: the attempt was interrupted", "PatchStatus p-1")
	s.where(p, queue.ErrorBackoff)
	s.used(0)
	s.requests = nil
	s.tick(10 * time.Second)

	s.interrupt(func(m *Machine) { m.bindings.runPreBind(assume(m)) }) // it did
	s.did("AttemptDone p-1: Scheduled", "Bind p-1 to n")
	s.where(p, queue.InFlight)
	s.used(30)

	s.interrupt(func(m *Machine) { m.attempts.dequeue(m.pods.byUID[p.UID]) }) // of a deletion, half
	s.used(0)
	s.requests = nil
	s.deletePod(p.Key())
	s.settle()
	s.checkRest()
}

// What is being written stays reserved when a step of another pod panics.
func TestRepairKeepsWrites(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 30)
	s.given(s.node("n", 40), p)
	s.cycle("PreBind", writes)
	s.did("AttemptDone p-1: Scheduled", "PatchStatus p-1", "Write for p-1")
	s.interrupt(func(*Machine) {})
	s.did()
	s.used(30)
	if slices.Contains(s.moody.calls, "Unreserve p") {
		t.Error("it was given back")
	}
	s.settle()
	s.runs(p, "n")
}

// A node is taken in and the step panics before any pod hears of it. Given
// again, the node is not news; the pod is tried all the same.
func TestRepairCallsPods(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 30)
	s.given(s.node("n", 20), p)
	s.settle()
	s.where(p, queue.Unschedulable)
	n := s.node("n", 40)
	s.nodes["n"] = n
	s.interrupt(func(m *Machine) { m.table.SetNode(n) })
	s.nodeNews = []string{"n"}
	s.settle()
	s.runs(p, "n")
}

// A pod that waits for an extender goes on waiting, unless the panic took away what
// the pod waits for.
func TestRepairExtenderCycles(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 30, managed)
	s.given(s.node("n", 40), p)
	s.cycle("", "")
	s.interrupt(func(*Machine) {})
	s.where(p, queue.InFlight)
	s.interrupt(func(m *Machine) {
		for _, c := range m.extenders.cycles { // the reply came, and no more
			for number, call := range c.open {
				delete(c.open, number)
				m.extenders.callEnded(call.extender)
			}
		}
	})
	s.where(p, queue.ErrorBackoff)
	s.requests = nil
	s.settle()
	s.runs(p, "n")
}

// A QueueSort plugin that changes its mind leaves a queue that is not in order. The repair
// after the next panic puts it in order.
func TestRepairSortsTheQueue(t *testing.T) {
	s := newStory(t)
	s.given(s.pod("p", 30), s.pod("q", 30), s.pod("r", 30))
	for _, m := range []*Machine{s.m, s.twin} {
		m.options.Profiles[0].QueueSort.Less = func(a, b *framework.QueuedPodInfo) bool { return a.Pod.Name > b.Pod.Name }
		if m.Verify() == nil {
			t.Error("the queue is in order")
		}
	}
	s.interrupt(func(*Machine) {})
	if first := s.m.First(); first.Name != "r" {
		t.Errorf("the first pod is %s", first.Name)
	}
}

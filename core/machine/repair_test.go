package machine

import (
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// After a panic in the middle of a step no pod is lost: one that the queue
// handed out and nobody carries backs off, one whose binding may never have been
// sent is read, and an eviction that may never have been sent is sent again.
func TestRepair(t *testing.T) {
	w := newWorld(t)
	w.setNode(w.node("n", 1000))
	carried, high, dropped := w.pod("carried", 10), w.pod("high", 1000, func(p *object.Pod) { p.Priority = 1 }), w.pod("dropped", 10)
	m := New(options(&moody{}))
	now := time.Unix(1000, 0)
	m.Step(now, NodeSet{w.node("n", 1000)})
	m.Step(now, PodSet{carried})
	m.Step(now, Cycle{})
	m.Step(now, PodSet{high})
	m.Step(now, Cycle{})
	m.Step(now, PodSet{dropped})
	if a, ok := m.queue.Pop(now); !ok || a.Pod.UID != dropped.UID {
		t.Fatal("the second pod is not next")
	}
	effects := m.Repair()
	if len(effects) != 2 {
		t.Fatalf("%d effects, want an eviction and a read", len(effects))
	}
	if evict, ok := effects[0].(Evict); !ok || evict.Victim.UID != carried.UID || evict.Preemptor.UID != high.UID {
		t.Errorf("got %v, want the eviction of %s for %s", effects[0], carried.Key(), high.Key())
	}
	if read, ok := effects[1].(Read); !ok || read.Pod.UID != carried.UID {
		t.Errorf("got %v, want a read of %s", effects[1], carried.Key())
	}
	if at := m.queue.Where(dropped.UID); at != queue.ErrorBackoff {
		t.Errorf("the pod that nobody carries is %s, want in error backoff", at)
	}
	if err := m.Verify(); err != nil {
		t.Error(err)
	}
}

package machine

import (
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/queue"
)

// After a panic in the middle of a step no pod is lost: one that the queue
// handed out and nobody carries backs off, and one whose binding may never
// have been sent is read.
func TestRepair(t *testing.T) {
	w := newWorld(t)
	w.setNode(w.node("n", 1000))
	carried, dropped := w.pod("carried", 10), w.pod("dropped", 10)
	m := New(options(&moody{}))
	now := time.Unix(1000, 0)
	m.Step(now, NodeSet{w.node("n", 1000)})
	m.Step(now, PodSet{carried})
	m.Step(now, Cycle{})
	m.Step(now, PodSet{dropped})
	if a, ok := m.queue.Pop(now); !ok || a.Pod.UID != dropped.UID {
		t.Fatal("the second pod is not next")
	}
	effects := m.Repair()
	if len(effects) != 1 {
		t.Fatalf("%d effects, want one read", len(effects))
	}
	if read, ok := effects[0].(Read); !ok || read.Pod.UID != carried.UID {
		t.Errorf("got %v, want a read of %s", effects[0], carried.Key())
	}
	if at := m.queue.Where(dropped.UID); at != queue.ErrorBackoff {
		t.Errorf("the pod that nobody carries is %s, want in error backoff", at)
	}
	if err := m.Verify(); err != nil {
		t.Error(err)
	}
}

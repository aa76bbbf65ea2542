package machine

import (
	"testing"

	"github.com/berth-scheduler/berth/core/queue"
)

// A pod that is being deleted before it was scheduled has no place in the queue after
// its turn. It is known as the API shows it all the same.
func TestDeletedWhileItWaits(t *testing.T) {
	p := newEvictions(t)
	going := preemptible("going", 0, "")
	going.Pod.Terminating, going.Pod.Version = true, "7"
	p.do(going, ScheduleOne{})
	if p.Ready() || p.Entry("going").Place() != queue.Nowhere {
		t.Fatal("it waits for another turn")
	}
	if known := p.KnownPods(); len(known) != 1 || known[0].Version != "7" {
		t.Errorf("known as %v", known)
	}
}

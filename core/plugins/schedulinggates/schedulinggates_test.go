package schedulinggates

import (
	"testing"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// A pod with gates is held, and the reason names them; one without gates is not.
func TestGatesHoldThePod(t *testing.T) {
	if s := New().PreEnqueue(nil, &object.Pod{}); s != nil {
		t.Errorf("no gates: got %+v", s)
	}
	s := New().PreEnqueue(nil, &object.Pod{Gates: []string{"b", "a"}})
	if s == nil || s.Code != decision.UnschedulableAndUnresolvable || len(s.Reasons) != 1 || s.Reasons[0] != "waiting for scheduling gates: [b a]" {
		t.Errorf("got %+v", s)
	}
}

// Only the end of its own gates requeues a pod.
func TestQueueingHints(t *testing.T) {
	pod := &object.Pod{UID: "1"}
	gates := framework.Event{Resource: framework.TargetPod, ActionType: framework.UpdatePodSchedulingGatesEliminated, NewPod: pod}
	label := framework.Event{Resource: framework.TargetPod, ActionType: framework.UpdatePodLabel, NewPod: pod}
	if !plugintest.Queues(New(), pod, gates) {
		t.Error("its gates went and it sleeps on")
	}
	if plugintest.Queues(New(), pod, label) {
		t.Error("it queues for what does not help")
	}
}

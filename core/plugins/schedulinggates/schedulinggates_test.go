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
	own := framework.Event{Resource: framework.UnscheduledPod, ActionType: framework.UpdatePodSchedulingGatesEliminated, NewPod: &object.Pod{UID: "1"}}
	other := framework.Event{Resource: framework.UnscheduledPod, ActionType: framework.UpdatePodSchedulingGatesEliminated, NewPod: &object.Pod{UID: "2"}}
	label := framework.Event{Resource: framework.UnscheduledPod, ActionType: framework.UpdatePodLabel, NewPod: &object.Pod{UID: "1"}}
	if !plugintest.Queues(New(), pod, own) {
		t.Error("its gates went and it sleeps on")
	}
	if plugintest.Queues(New(), pod, other) || plugintest.Queues(New(), pod, label) {
		t.Error("it queues for what does not help")
	}
}

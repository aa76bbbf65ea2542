package noderesources

import (
	"testing"

	configv1 "k8s.io/kube-scheduler/config/v1"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// A pod is requeued by an event that may make room for what it requests, and by no
// other.
func TestQueueingHints(t *testing.T) {
	pl := plugin(t, &configv1.NodeResourcesFitArgs{IgnoredResources: []string{string(fpga)}})
	size := func(cpu, memory int64) resource.Vector { return resource.Vector{MilliCPU: cpu, Memory: memory} }
	pod := &object.Pod{UID: "waits", Demand: resource.Demand{Requests: resource.Vector{MilliCPU: 500, Scalars: []resource.Scalar{{Name: fpga, Value: 1}}}}}
	placed := func(uid string, v resource.Vector) *object.Pod {
		return &object.Pod{UID: "other", NodeName: "a", Demand: resource.Demand{Usage: v}}
	}
	node := func(cpu, memory, pods int64) *object.Node {
		return &object.Node{Name: "a", Allocatable: size(cpu, memory), AllowedPods: pods}
	}
	for _, c := range []struct {
		name string
		e    framework.Event
		want bool
	}{
		{"a placed pod goes", framework.Event{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: placed("x", size(0, 1))}, true},
		{"a nominated pod goes", framework.Event{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: &object.Pod{NominatedNode: "a"}}, true},
		{"CPU is given back", framework.Event{Resource: framework.AssignedPod, ActionType: framework.UpdatePodScaleDown, OldPod: placed("x", size(2, 2)), NewPod: placed("x", size(1, 3))}, true},
		{"only memory is given back", framework.Event{Resource: framework.AssignedPod, ActionType: framework.UpdatePodScaleDown, OldPod: placed("x", size(2, 2)), NewPod: placed("x", size(2, 1))}, false},
		{"the pod itself shrinks", framework.Event{Resource: framework.TargetPod, ActionType: framework.UpdatePodScaleDown, OldPod: pod, NewPod: pod}, true},
		{"the pod itself grows", framework.Event{Resource: framework.TargetPod, ActionType: framework.UpdatePodScaleUp, OldPod: pod, NewPod: pod}, false},
		{"a node comes that is large enough", framework.Event{Resource: framework.Node, ActionType: framework.Add, NewNode: node(500, 0, 1)}, true},
		{"a node comes that is too small", framework.Event{Resource: framework.Node, ActionType: framework.Add, NewNode: node(499, 9, 9)}, false},
		{"a node comes that takes no pods", framework.Event{Resource: framework.Node, ActionType: framework.Add, NewNode: node(500, 0, 0)}, false},
		{"CPU grows", framework.Event{Resource: framework.Node, ActionType: framework.UpdateNodeAllocatable, OldNode: node(600, 9, 9), NewNode: node(601, 9, 9)}, true},
		{"CPU grows, not enough", framework.Event{Resource: framework.Node, ActionType: framework.UpdateNodeAllocatable, OldNode: node(300, 9, 9), NewNode: node(400, 9, 9)}, false},
		{"memory grows", framework.Event{Resource: framework.Node, ActionType: framework.UpdateNodeAllocatable, OldNode: node(600, 1, 9), NewNode: node(600, 9, 9)}, false},
		{"more pods allowed", framework.Event{Resource: framework.Node, ActionType: framework.UpdateNodeAllocatable, OldNode: node(600, 1, 1), NewNode: node(600, 1, 2)}, true},
		{"a label changes", framework.Event{Resource: framework.Node, ActionType: framework.UpdateNodeLabel, OldNode: node(1, 1, 1), NewNode: node(1, 1, 1)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := plugintest.Queues(pl, pod, c.e); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// Whatever change makes room for a pod that fitted nowhere queues it.
func TestNoRequeueIsMissed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pl, tb, pod := plugin(t, drawArgs(t)), drawTable(t, small), drawPod(t, "waits", small)
		fits := func() bool {
			for _, why := range plugintest.Ask(t, pl, tb, pod).Blocked { // any order: is there one
				if why == "" {
					return true
				}
			}
			return false
		}
		if fits() {
			return
		}
		var e framework.Event
		old := tb.Node(0)
		switch now := *old; rapid.IntRange(0, 3).Draw(t, "change") {
		case 0:
			if len(tb.Pods(0)) == 0 {
				return
			}
			e = framework.Event{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: tb.Pods(0)[0].Pod}
			tb.RemovePod(e.OldPod.UID)
		case 1:
			if len(tb.Pods(0)) == 0 {
				return
			}
			was := tb.Pods(0)[0].Pod
			is := drawPod(t, string(was.UID), small)
			e = framework.Event{Resource: framework.AssignedPod, ActionType: framework.UpdatePodScaleDown, OldPod: was, NewPod: is}
			tb.AddPod(is, old.Name)
		case 2:
			now.Allocatable, now.AllowedPods = drawVector(t, "now", small), rapid.Int64Range(0, 9).Draw(t, "pods now")
			e = framework.Event{Resource: framework.Node, ActionType: framework.UpdateNodeAllocatable, OldNode: old, NewNode: &now}
			tb.SetNode(&now)
		case 3:
			now.Name, now.Allocatable, now.AllowedPods = "new", drawVector(t, "new", small), 1
			e = framework.Event{Resource: framework.Node, ActionType: framework.Add, NewNode: &now}
			tb.SetNode(&now)
		}
		if fits() && !plugintest.Queues(pl, pod, e) {
			t.Fatalf("not requeued by %+v", e)
		}
	})
}

package foresight

import (
	"fmt"
	"math"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/resource"
)

// A pod is too large for an event about a node if it needs more than there is beside the
// pods of its priority and above, those nominated there included.
func TestPodsThatAreTooLarge(t *testing.T) {
	w := newWorld(t)
	serial := 0
	of := func(cpu, memory int64, priority int32) *object.Pod {
		serial++
		v := resource.Vector{MilliCPU: cpu, Memory: memory}
		return &object.Pod{UID: types.UID(fmt.Sprint(serial)), Priority: priority, Demand: resource.Demand{Requests: v, Usage: v, NonZero: v}}
	}
	tb := w.Table
	tb.SetNode(&object.Node{Name: "a", AllowedPods: 110, Allocatable: resource.Vector{MilliCPU: 1000, Memory: 100}})
	tb.AddPod(of(100, 10, 0), "a")
	tb.AddPod(of(300, 20, 10), "a")
	nominated := w.queue.Add(time.Time{}, of(50, 5, 5))
	w.queue.Nominate(nominated, "a")
	left := &framework.Event{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: &object.Pod{NodeName: "a"}}
	tooLarge := w.About(left).TooLarge
	for _, want := range []queue.Size{
		{Priority: 0, MilliCPU: 1000 - 100 - 300 - 50, Memory: 100 - 10 - 20 - 5},
		{Priority: 5, MilliCPU: 1000 - 300 - 50, Memory: 100 - 20 - 5},
		{Priority: 6, MilliCPU: 1000 - 300, Memory: 100 - 20},
		{Priority: 11, MilliCPU: 1000, Memory: 100},
	} {
		moreCPU, moreMemory := want, want
		moreCPU.MilliCPU++
		moreMemory.Memory++
		if tooLarge(want) || !tooLarge(moreCPU) || !tooLarge(moreMemory) {
			t.Errorf("%+v: too large %t, with more CPU %t, with more memory %t", want, tooLarge(want), tooLarge(moreCPU), tooLarge(moreMemory))
		}
	}

	tb.AddPod(nominated.Pod, "a") // it counts once, as in an attempt
	if tooLarge := w.About(left).TooLarge; tooLarge(queue.Size{Priority: 5, MilliCPU: 1000 - 300 - 50}) {
		t.Error("a pod is too large beside one that is nominated and placed")
	}

	tb.AddPod(of(5000, 0, 10), "a") // more than the node has
	if tooLarge := w.About(left).TooLarge; tooLarge(queue.Size{}) {
		t.Error("a pod that requests nothing is too large for a node that is overcommitted")
	}
	tb.AddPod(of(math.MaxInt64, 0, 10), "a")
	if tooLarge := w.About(left).TooLarge; tooLarge(queue.Size{MilliCPU: math.MaxInt64 - 1}) {
		t.Error("a pod is too large for a node of which nobody knows what its pods take")
	}
	for what, e := range map[string]*framework.Event{
		"a pod with devices leaves":   {Resource: framework.AssignedPod, OldPod: &object.Pod{NodeName: "a", Claims: make([]object.PodClaim, 1)}},
		"a pod with volumes leaves":   {Resource: framework.AssignedPod, OldPod: &object.Pod{NodeName: "a", Volumes: []object.Volume{{Claimed: true, Claim: "c"}}}},
		"the drivers of a node":       {Resource: framework.ResourceOf(object.CSINodes), NewObject: &object.CSINode{Meta: object.Meta{Name: "a"}}},
		"a node that is not there":    {Resource: framework.AssignedPod, OldPod: &object.Pod{NodeName: "b"}},
		"anything may have happened":  {Resource: framework.WildCard},
		"a pod that is on no node is": {Resource: framework.UnscheduledPod, OldPod: &object.Pod{NominatedNode: "a"}},
	} {
		if w.About(e).TooLarge(queue.Size{MilliCPU: math.MaxInt64, Memory: math.MaxInt64}) {
			t.Errorf("%s: pods are too large for it", what)
		}
	}
}

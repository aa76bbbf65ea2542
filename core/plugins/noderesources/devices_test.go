package noderesources

import (
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/devices"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

const cards = v1.ResourceName("example.com/card")

// withDevices is nodes that offer four cards, that have four devices, one of
// them taken, and that have none of either; the plugin scores by cards.
func withDevices(t *testing.T, counter *devices.Counter) (framework.Plugin, *table.Table) {
	t.Helper()
	pl, err := New(&configv1.NodeResourcesFitArgs{ScoringStrategy: &configv1.ScoringStrategy{Type: configv1.MostAllocated,
		Resources: []configv1.ResourceSpec{{Name: string(cards), Weight: 1}}}}, counter)
	if err != nil {
		t.Fatal(err)
	}
	tb := plugintest.Table(&object.Node{Name: "bare", AllowedPods: 10}, &object.Node{Name: "devices", AllowedPods: 10},
		&object.Node{Name: "own", AllowedPods: 10, Allocatable: vector(4)})
	node := "devices"
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "card", NodeName: &node, Pool: resourcev1.ResourcePool{Name: "p", Generation: 1, ResourceSliceCount: 1}}}
	for _, name := range []string{"a", "b", "c", "d"} {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: name})
	}
	tb.Objects().Set(&object.ResourceSlice{Meta: object.Meta{Kind: object.ResourceSlices, Name: "s"}, API: s})
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Driver: "card", Pool: "p", Device: "b"}}}}
	tb.Objects().Set(&object.ResourceClaim{Meta: object.Meta{Kind: object.ResourceClaims, Namespace: "ns", Name: "c"}, API: c})
	return pl, tb
}

func vector(n int64) resource.Vector {
	return resource.Vector{Scalars: []resource.Scalar{{Name: cards, Value: n}}}
}

func card(n int64) *object.Pod {
	return &object.Pod{Demand: resource.Demand{Requests: vector(n), Scoring: vector(n)}, Extended: []object.ExtendedRequest{{Resource: cards, Count: n}}}
}

func class(resource string) *object.DeviceClass {
	api := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "card"}}
	if resource != "" {
		api.Spec.ExtendedResourceName = &resource
	}
	return &object.DeviceClass{Meta: object.Meta{Kind: object.DeviceClasses, Name: "card"}, API: api}
}

// Pods that come to a node take none of what a device class stands for there: the node
// is short of it only where it offers some itself, and then by as much as the filter says.
func TestPodsThatComeTakeNoDevices(t *testing.T) {
	pl, tb := withDevices(t, devices.NewCounter(structured.Features{}))
	tb.Objects().Set(class(string(cards)))
	p := card(2)
	in := &framework.Input{Table: tb, Pod: p, Rules: pl.PreFilter(tb, p).Rules}
	for _, node := range []string{"bare", "devices", "own"} {
		row, _ := tb.Find(node)
		lack := lacking(in, row)
		came := &object.Pod{UID: "came", Demand: resource.Demand{Usage: vector(3)}}
		enough := true
		for d, frees := range usedBy(in, came) {
			enough = enough && resource.Add(lack[d], frees) <= 0
		}
		mark := tb.Checkpoint()
		tb.AddPod(came, node)
		var verdict [1]framework.Verdict
		pl.Filter(in, []table.Row{row}, verdict[:])
		tb.Undo(mark)
		if enough != (verdict[0] == framework.Fits) || enough != (node != "own") {
			t.Errorf("%s: enough by the sums: %t; verdict %b", node, enough, verdict[0])
		}
	}
}

// What a device class stands for is DynamicResources' to look at, but on nodes
// that offer the resource themselves; devices count in the score.
func TestDevicesStandForTheResource(t *testing.T) {
	pl, tb := withDevices(t, devices.NewCounter(structured.Features{}))
	const short = "UnschedulableAndUnresolvable: Insufficient example.com/card"
	before := string(pl.Sign(nil, tb, card(2)))
	if got := plugintest.Ask(t, pl, tb, card(2)).Blocked; !maps.Equal(got, map[string]string{"bare": short, "devices": short, "own": ""}) {
		t.Errorf("without a class: %v", got)
	}
	tb.Objects().Set(class(string(cards)))
	if string(pl.Sign(nil, tb, card(2))) == before {
		t.Error("the pod is of the class that it was of without a device class")
	}
	got := plugintest.Ask(t, pl, tb, card(2))
	if !maps.Equal(got.Blocked, map[string]string{"bare": "", "devices": "", "own": ""}) {
		t.Errorf("with one: %v", got.Blocked)
	}
	if want := map[string]int64{"bare": 0, "devices": 75, "own": 50}; !maps.Equal(got.Scores, want) {
		t.Errorf("scores %v, want %v", got.Scores, want)
	}
	if got := plugintest.Ask(t, pl, tb, card(5)).Blocked["own"]; got != short {
		t.Errorf("more than the node offers: %q", got)
	}
	off, tb := withDevices(t, nil)
	tb.Objects().Set(class(string(cards)))
	if got := plugintest.Ask(t, off, tb, card(2)); got.Blocked["devices"] != short || got.Scores["devices"] != 0 {
		t.Errorf("with the gate off: %v", got)
	}
}

// A class that comes to stand for what the pod names queues it, and so does a
// node that leaves it to a class.
func TestDeviceClassRequeues(t *testing.T) {
	pl, tb := withDevices(t, devices.NewCounter(structured.Features{}))
	requeues := func(old, now *object.DeviceClass, p *object.Pod) bool {
		e := framework.Event{Resource: framework.ResourceOf(object.DeviceClasses), ActionType: framework.Add, NewObject: now}
		if old != nil {
			e.ActionType, e.OldObject = framework.UpdateOther, old
		}
		return plugintest.Queues(pl, p, e)
	}
	other := class("example.com/other")
	implicit := &object.Pod{Extended: []object.ExtendedRequest{{Resource: v1.ResourceName(resourcev1.ResourceDeviceClassPrefix + "card")}}}
	for name, c := range map[string]struct{ got, want bool }{
		"comes":                   {requeues(nil, class(string(cards)), card(1)), true},
		"comes, for another":      {requeues(nil, other, card(1)), false},
		"comes, for none":         {requeues(nil, class(""), card(1)), false},
		"is named so":             {requeues(nil, class(""), implicit), true},
		"was named so before":     {requeues(other, class(""), implicit), false},
		"turns to it":             {requeues(other, class(string(cards)), card(1)), true},
		"stands for it as before": {requeues(class(string(cards)), class(string(cards)), card(1)), false},
	} {
		if c.got != c.want {
			t.Errorf("a class %s: requeues %v", name, c.got)
		}
	}
	grows := framework.Event{Resource: framework.Node, ActionType: framework.UpdateNodeAllocatable, Table: tb,
		OldNode: &object.Node{Name: "bare", AllowedPods: 10}, NewNode: &object.Node{Name: "bare", AllowedPods: 10}}
	if plugintest.Queues(pl, card(1), grows) {
		t.Error("a node queues a pod that nothing on it is for")
	}
	tb.Objects().Set(class(string(cards)))
	if !plugintest.Queues(pl, card(1), grows) {
		t.Error("a node that leaves the resource to a class requeues no pod")
	}
}

package nodedeclaredfeatures

import (
	"maps"
	"testing"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

func pod(features ...string) *object.Pod { return &object.Pod{UID: "1", Features: features} }

func node(name string, features ...string) *object.Node {
	return &object.Node{Name: name, Features: features}
}

const rejected = "UnschedulableAndUnresolvable: node(s) didn't match Pod's required features"

// A node fits if its sorted list has each feature that the pod needs; without the gate
// every node fits.
func TestFilter(t *testing.T) {
	tb := plugintest.Table(node("none"), node("a", "A"), node("ab", "A", "B"), node("abc", "A", "B", "C"), node("unsorted", "B", "A"))
	for _, c := range []struct {
		name string
		pod  *object.Pod
		want map[string]string
	}{
		{"needs nothing", pod(), nil},
		{"one", pod("A"), map[string]string{"none": rejected, "a": "", "ab": "", "abc": "", "unsorted": rejected}},
		{"the last", pod("B"), map[string]string{"none": rejected, "a": rejected, "ab": "", "abc": "", "unsorted": ""}},
		{"two", pod("A", "C"), map[string]string{"none": rejected, "a": rejected, "ab": rejected, "abc": "", "unsorted": rejected}},
	} {
		t.Run(c.name, func(t *testing.T) {
			pl := New(feature.Features{NodeDeclaredFeatures: true})
			if got := plugintest.Ask(t, pl, tb, c.pod).Blocked; !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if got := plugintest.Ask(t, New(feature.Features{}), tb, c.pod).Blocked; got != nil {
				t.Errorf("without the gate: got %v", got)
			}
			if (string(pl.Sign(nil, nil, c.pod)) == string(pl.Sign(nil, nil, pod()))) != (c.want == nil) {
				t.Errorf("signature %q", string(pl.Sign(nil, nil, c.pod)))
			}
		})
	}
}

// A pod is requeued by nodes that come or declare more, and when it needs less; without
// the gate by nothing.
func TestQueueingHints(t *testing.T) {
	update := func(r framework.EventResource, a framework.ActionType, e framework.Event) framework.Event {
		e.Resource, e.ActionType = r, a
		return e
	}
	for _, c := range []struct {
		name  string
		event framework.Event
		want  bool
	}{
		{"a node comes", update(framework.Node, framework.Add, framework.Event{NewNode: node("a")}), true},
		{"a node declares more", update(framework.Node, framework.UpdateNodeDeclaredFeature, framework.Event{OldNode: node("a"), NewNode: node("a", "A")}), true},
		{"a node declares the same", update(framework.Node, framework.UpdateNodeDeclaredFeature, framework.Event{OldNode: node("a", "A"), NewNode: node("a", "A")}), false},
		{"a node's labels", update(framework.Node, framework.UpdateNodeLabel, framework.Event{OldNode: node("a"), NewNode: node("a", "A")}), false},
		{"the pod needs less", update(framework.TargetPod, framework.UpdateOther, framework.Event{OldPod: pod("A"), NewPod: pod()}), true},
		{"the pod needs the same", update(framework.TargetPod, framework.UpdatePodLabel, framework.Event{OldPod: pod("A"), NewPod: pod("A")}), false},
	} {
		if got := plugintest.Queues(New(feature.Features{NodeDeclaredFeatures: true}), pod("A"), c.event); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
		if plugintest.Queues(New(feature.Features{}), pod("A"), c.event) {
			t.Errorf("%s: requeued without the gate", c.name)
		}
	}
}

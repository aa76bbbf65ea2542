package nodename

import (
	"maps"
	"slices"
	"testing"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

const blocked = "UnschedulableAndUnresolvable: node(s) didn't match the requested node name"

// A pod that names a node fits that node only, and no other node is asked.
func TestFilter(t *testing.T) {
	tb := plugintest.Table(&object.Node{Name: "a"}, &object.Node{Name: "b"})
	for _, c := range []struct {
		asksFor string
		want    map[string]string
	}{
		{"", nil},
		{"a", map[string]string{"a": "", "b": blocked}},
		{"elsewhere", map[string]string{"a": blocked, "b": blocked}},
	} {
		if same := string(New().Sign(nil, nil, &object.Pod{NodeName: c.asksFor})) == string(New().Sign(nil, nil, &object.Pod{})); same != (c.asksFor == "") {
			t.Errorf("spec.nodeName %q: the signature does not tell", c.asksFor)
		}
		got := plugintest.Ask(t, New(), tb, &object.Pod{NodeName: c.asksFor})
		if !maps.Equal(got.Blocked, c.want) || c.asksFor != "" && !slices.Equal(got.Named, []string{c.asksFor}) {
			t.Errorf("spec.nodeName %q: got %+v, want %v", c.asksFor, got, c.want)
		}
	}
}

// A pod is requeued by a new node, and not by labels or a node that goes.
func TestQueueingHints(t *testing.T) {
	for action, want := range map[framework.ActionType]bool{
		framework.Add: true, framework.UpdateNodeLabel: false, framework.Delete: false,
	} {
		e := framework.Event{Resource: framework.Node, ActionType: action, NewNode: &object.Node{Name: "a"}}
		if got := plugintest.Queues(New(), &object.Pod{}, e); got != want {
			t.Errorf("action %b: got %v", action, got)
		}
	}
}

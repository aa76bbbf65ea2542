package nodename

import (
	"maps"
	"testing"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

const blocked = "UnschedulableAndUnresolvable: node(s) didn't match the requested node name"

// A pod that names a node fits that node only.
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
		got := plugintest.Ask(t, New(), tb, &object.Pod{NodeName: c.asksFor}).Blocked
		if !maps.Equal(got, c.want) {
			t.Errorf("spec.nodeName %q: got %v, want %v", c.asksFor, got, c.want)
		}
	}
}

// A pod is requeued by a new node and a change of taints, and not by labels or a node
// that goes.
func TestQueueingHints(t *testing.T) {
	for action, want := range map[framework.ActionType]bool{
		framework.Add: true, framework.UpdateNodeTaint: true, framework.UpdateNodeLabel: false, framework.Delete: false,
	} {
		e := framework.Event{Resource: framework.Node, ActionType: action, NewNode: &object.Node{Name: "a"}}
		if got := plugintest.Queues(New(), &object.Pod{}, e); got != want {
			t.Errorf("action %b: got %v", action, got)
		}
	}
}

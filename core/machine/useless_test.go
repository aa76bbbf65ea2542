package machine

import (
	"testing"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// A plugin is concerned with an event that it registered, unless its hint says no.
func TestPluginSaysWhatMayHelp(t *testing.T) {
	hint := func(says bool) func(*object.Pod, *framework.Event) bool {
		return func(*object.Pod, *framework.Event) bool { return says }
	}
	e := &framework.Event{Resource: framework.AssignedPod, ActionType: framework.Delete}
	for name, c := range map[string]struct {
		registered framework.ClusterEventWithHint
		want       bool
	}{
		"the hint says no":  {framework.ClusterEventWithHint{Resource: e.Resource, ActionType: framework.Delete, QueueingHintFn: hint(false)}, false},
		"the hint says yes": {framework.ClusterEventWithHint{Resource: e.Resource, ActionType: framework.All, QueueingHintFn: hint(true)}, true},
		"there is no hint":  {framework.ClusterEventWithHint{Resource: framework.WildCard, ActionType: framework.Delete}, true},
		"another resource":  {framework.ClusterEventWithHint{Resource: framework.Node, ActionType: framework.Delete, QueueingHintFn: hint(true)}, false},
		"another action":    {framework.ClusterEventWithHint{Resource: e.Resource, ActionType: framework.Add, QueueingHintFn: hint(true)}, false},
	} {
		pl := &framework.Plugin{EventsToRegister: []framework.ClusterEventWithHint{
			{Resource: framework.Namespace, ActionType: framework.All, QueueingHintFn: hint(true)}, c.registered}}
		if got := mayHelp(pl, &object.Pod{}, e); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

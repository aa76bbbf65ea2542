package dynamicresources

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// What a claim gets for one pod of a group is there for the others, where the devices can be
// used, and for nobody else, until the last of them gives it up.
func TestGroupSharesAllocation(t *testing.T) {
	tb := world()
	pl := build(nil, feature.Features{GenericWorkload: true}).declare()
	first := claim(tb, "first", 1)
	member := func(name, group string) *object.Pod {
		return &object.Pod{UID: types.UID("pod " + name), Namespace: "ns", Name: name, Claims: first.Claims, SchedulingGroup: object.InPodGroup(group)}
	}
	first.SchedulingGroup = object.InPodGroup("g")
	second := member("second", "g")
	pending := "UnschedulableAndUnresolvable: resource claim ns/first is in the process of being allocated"

	tb.AddPod(first, "b")
	if s := pl.Reserve(tb, first, "b"); s != nil {
		t.Fatal(s)
	}
	for _, other := range []*object.Pod{member("other", "h"), member("single", "")} {
		if got := plugintest.Ask(t, pl, tb, other).Rejected; got != pending {
			t.Errorf("%s: %q", other.Name, got)
		}
	}
	if got := plugintest.Ask(t, pl, tb, second).Blocked; !maps.Equal(got, map[string]string{"a": "UnschedulableAndUnresolvable: " + notAvailable, "b": ""}) {
		t.Fatalf("the second pod of the group: %v", got)
	}
	tb.AddPod(second, "b")
	if s := pl.Reserve(tb, second, "b"); s != nil {
		t.Fatal(s)
	}
	third := claim(tb, "third", 1)
	if got := plugintest.Ask(t, pl, tb, third).Blocked; !maps.Equal(got, map[string]string{"a": "", "b": short}) {
		t.Errorf("another claim: %v", got)
	}

	// Whoever writes first writes the whole allocation.
	for _, p := range []*object.Pod{second, first} {
		writes, s := pl.PreBind(tb, p, "b")
		if s != nil || len(writes) != 2 {
			t.Fatalf("%s: %v %v", p.Name, writes, s)
		}
		status := writes[1].Patch["status"].(map[string]any)
		if status["allocation"] == nil || len(status["reservedFor"].([]any)) != 1 {
			t.Errorf("%s writes %v", p.Name, status)
		}
	}

	pl.Unreserve(tb, first, "b")
	tb.RemovePod(first.UID)
	if got := plugintest.Ask(t, pl, tb, third).Blocked["b"]; got != short {
		t.Errorf("while the second pod holds the claim: %q", got)
	}
	if writes, s := pl.PreBind(tb, second, "b"); s != nil || len(writes) != 2 {
		t.Errorf("the second pod, alone: %v %v", writes, s)
	}
	pl.Unreserve(tb, second, "b")
	if got := plugintest.Ask(t, pl, tb, third).Blocked["b"]; got != "" {
		t.Errorf("when nobody holds it: %q", got)
	}
}

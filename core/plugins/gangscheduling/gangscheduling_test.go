package gangscheduling

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

func pod(name, group string) *object.Pod {
	return &object.Pod{UID: types.UID(name), Namespace: "d", Name: name, SchedulingGroup: object.InPodGroup(group)}
}

// gang is a table with a node, a group and its pods, of which the first so many are placed.
func gang(pods, placed int, g *object.PodGroup) *table.Table {
	t := table.New()
	t.CountGroups()
	t.SetNode(&object.Node{Name: "n", AllowedPods: 10})
	if g != nil {
		g.Meta = object.Meta{Kind: object.PodGroups, Namespace: "d", Name: "g"}
		t.Objects().Set(g)
	}
	for i := range pods {
		p := pod(fmt.Sprint("p", i), "g")
		t.Groups().Join(p)
		if i < placed {
			t.AddPod(p, "n")
		}
	}
	return t
}

// A pod enters the queue when its group is there with enough pods.
func TestPreEnqueue(t *testing.T) {
	const missing, few = `waiting for pods's pod group "g" to appear in scheduling queue`, "waiting for minCount pods from a gang to appear in scheduling queue"
	three := &object.PodGroup{Gang: true, MinCount: 3}
	for name, tc := range map[string]struct {
		pod   *object.Pod
		table *table.Table
		want  string
	}{
		"a pod of no group":         {pod("x", ""), gang(1, 0, nil), ""},
		"no such group":             {pod("p0", "g"), gang(3, 0, nil), missing},
		"too few pods":              {pod("p0", "g"), gang(2, 0, three), few},
		"enough pods":               {pod("p0", "g"), gang(3, 0, three), ""},
		"placed pods count":         {pod("p2", "g"), gang(3, 2, three), ""},
		"a group that is no gang":   {pod("p0", "g"), gang(1, 0, &object.PodGroup{}), ""},
		"a pod that nobody knew of": {pod("x", "h"), gang(0, 0, nil), `waiting for pods's pod group "h" to appear in scheduling queue`},
	} {
		got := ""
		if s := New().PreEnqueue(tc.table, tc.pod); s != nil {
			if got = s.Reasons[0]; s.Code != decision.UnschedulableAndUnresolvable {
				t.Errorf("%s: code %s", name, s.Code)
			}
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// A gang that was placed once, and of which fewer pods are known than it needs, requires no more
// than a pod while one of it stays bound. It is a whole gang again once all that are bound are
// being deleted, and while as many pods as it needs are known: those that wait are placed
// together then.
func TestRequired(t *testing.T) {
	const feasible = decision.Success
	for name, c := range map[string]struct {
		condition           v1.ConditionStatus
		source              string
		pods, leaving, left int // known, of the two bound ones being deleted, and not yet tried
		want                decision.Code
	}{
		"one leaves":                          {v1.ConditionTrue, "", 3, 1, 1, feasible},
		"both leave":                          {v1.ConditionTrue, "", 3, 2, 1, decision.Unschedulable},
		"it was never placed":                 {v1.ConditionFalse, "", 3, 0, 1, decision.Unschedulable},
		"from labels":                         {"", object.SchedulerPlugins, 3, 1, 1, feasible},
		"all are known":                       {v1.ConditionTrue, "", 4, 0, 2, decision.Wait},
		"all are known, one does not fit":     {v1.ConditionTrue, "", 4, 0, 1, decision.Unschedulable},
		"from labels, and one does not fit":   {"", object.SchedulerPlugins, 4, 0, 1, decision.Unschedulable},
		"all are known, one that leaves, too": {"", object.SchedulerPlugins, 4, 1, 2, decision.Wait},
	} {
		called := object.GroupName(c.source, "g")
		g := &object.PodGroup{Gang: true, MinCount: 4, Source: c.source, Scheduled: object.GroupCondition{Status: c.condition}}
		g.Meta = object.Meta{Kind: object.PodGroups, Namespace: "d", Name: "g"}
		tab := table.New()
		tab.CountGroups()
		for i := range c.pods {
			p := pod(fmt.Sprint("p", i), called)
			tab.Groups().Join(p)
			if i < 2 {
				p.NodeName, p.Terminating = "n", i < c.leaving
				tab.AddPod(p, "n")
			}
		}
		code := feasible
		if s := New().PodGroup.PlacementFeasible(tab, g, framework.PlacementProgress{Scheduled: 2, Remaining: c.left}); s != nil {
			code = s.Code
		}
		if code != c.want {
			t.Errorf("%s: got %s, want %s", name, code, c.want)
		}
	}
}

// Permit holds pods until enough have a node, and then lets all go that it held.
func TestPermit(t *testing.T) {
	three := &object.PodGroup{Gang: true, MinCount: 3}
	if out := New().Permit(gang(3, 2, three), pod("p1", "g"), "n"); out.Status == nil || out.Status.Code != decision.Wait || out.Timeout != timeout ||
		out.Status.Reasons[0] != "waiting for minCount pods from a gang to be scheduled" {
		t.Errorf("too few: got %+v", out)
	}
	out := New().Permit(gang(4, 3, three), pod("p2", "g"), "n")
	slices.Sort(out.Allow)
	if out.Status != nil || !slices.Equal(out.Allow, []types.UID{"p0", "p1", "p2"}) {
		t.Errorf("enough: got %+v", out)
	}
	for name, out := range map[string]framework.PermitResult{
		"a pod of no group":       New().Permit(gang(1, 1, three), pod("x", ""), "n"),
		"a group that is no gang": New().Permit(gang(2, 1, &object.PodGroup{}), pod("p0", "g"), "n"),
	} {
		if out.Status != nil || out.Allow != nil {
			t.Errorf("%s: got %+v", name, out)
		}
	}
	if out := New().Permit(gang(3, 2, nil), pod("p1", "g"), "n"); out.Status == nil || out.Status.Code != decision.Error ||
		out.Status.Err.Error() != `failed to get podGroup d/g: podgroup.scheduling.k8s.io "g" not found` {
		t.Errorf("no such group: got %+v", out)
	}
}

// A gated pod is called by a pod of its group, and by the group itself.
func TestEvents(t *testing.T) {
	group := func(namespace, name string) *framework.Event {
		return &framework.Event{Resource: framework.ResourceOf(object.PodGroups), ActionType: framework.Add,
			NewObject: &object.PodGroup{Meta: object.Meta{Namespace: namespace, Name: name}}}
	}
	arrival := func(r framework.EventResource, p *object.Pod) *framework.Event {
		return &framework.Event{Resource: r, ActionType: framework.Add, NewPod: p}
	}
	other := pod("y", "g")
	other.Namespace = "e"
	for name, tc := range map[string]struct {
		event *framework.Event
		want  bool
	}{
		"its group":                        {group("d", "g"), true},
		"another group":                    {group("d", "h"), false},
		"its name in another namespace":    {group("e", "g"), false},
		"a pod of the group":               {arrival(framework.UnscheduledPod, pod("y", "g")), true},
		"a bound pod of the group":         {arrival(framework.AssignedPod, pod("y", "g")), true},
		"a pod of another group":           {arrival(framework.UnscheduledPod, pod("y", "h")), false},
		"a pod of no group":                {arrival(framework.UnscheduledPod, pod("y", "")), false},
		"a pod of a group in another name": {arrival(framework.UnscheduledPod, other), false},
	} {
		called := false
		for _, e := range New().EventsToRegister {
			called = called || e.Matches(tc.event) && e.QueueingHintFn(pod("x", "g"), tc.event)
		}
		if called != tc.want {
			t.Errorf("%s: called %t", name, called)
		}
	}
}

package foresight

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/recovered"
	"github.com/berth-scheduler/berth/core/table"
)

// world has a table, a queue that is asked about nominations, and one profile.
type world struct {
	*Foresight
	queue   *queue.Queue
	profile *profile.Profile
	victims map[types.UID]bool // false: FoundNoVictims
}

func newWorld(t *testing.T) *world {
	w := &world{queue: queue.New(queue.Options{}), profile: &profile.Profile{Name: "s", Plugins: map[string]*framework.Plugin{}}, victims: map[types.UID]bool{}}
	w.Foresight = &Foresight{
		Table: table.New(), Profiles: map[string]*profile.Profile{"s": w.profile}, NominatedTo: w.queue.NominatedTo,
		Extended:       func(*object.Pod) bool { return false },
		Grouped:        func(*object.Pod) bool { return false },
		FoundNoVictims: func(p *object.Pod) bool { victims, known := w.victims[p.UID]; return known && !victims },
		Panicked:       func(p *recovered.Panic) { t.Error(p) },
	}
	return w
}

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

// The hints of a plugin that looks at volumes say nothing of what a pod with volumes or
// claims gave up that was assumed only.
func TestPluginsHearOfPods(t *testing.T) {
	filter := func(*framework.Input, []table.Row, []framework.Verdict) {}
	volumes := &framework.Plugin{FilterPlugin: framework.FilterPlugin{Filter: filter}, SignPlugin: framework.SignPlugin{Locality: framework.NodeAndPods}}
	domains := &framework.Plugin{FilterPlugin: framework.FilterPlugin{CellFilter: &framework.CellFilter{}}}
	plain := &object.Pod{}
	claiming, claimed := &object.Pod{Claims: make([]object.PodClaim, 1)}, &object.Pod{Volumes: []object.Volume{{Claimed: true}}}
	for _, c := range []struct {
		pl   *framework.Plugin
		left *object.Pod
		want bool
	}{
		{volumes, nil, true}, {volumes, plain, true}, {volumes, claiming, false}, {volumes, claimed, false},
		{domains, claimed, true}, {&framework.Plugin{}, plain, false},
	} {
		if got := hintsCover(c.pl, &framework.Event{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: c.left}); got != c.want {
			t.Errorf("hearsOf(%+v, %+v) = %t", c.pl.Filter != nil, c.left, got)
		}
	}
}

// A plugin that reads other objects answers by the node, since these have events of their
// own. The pod's claims change without any where a pod that was assumed shares one.
func TestPluginsAnswerByTheNode(t *testing.T) {
	plugin := func(reads bool) *framework.Plugin {
		return &framework.Plugin{
			SignPlugin: framework.SignPlugin{Locality: framework.NodeAndPods,
				SignRevision: func(*table.Table, *object.Pod) (uint64, bool) { return 0, !reads }},
			FilterPlugin: framework.FilterPlugin{Filter: func(*framework.Input, []table.Row, []framework.Verdict) {}},
		}
	}
	using := func(namespace, claim string) *object.Pod {
		return &object.Pod{Namespace: namespace, Volumes: []object.Volume{{Claimed: true, Claim: claim}}}
	}
	for _, c := range []struct {
		pl   *framework.Plugin
		left *object.Pod
		want bool
	}{
		{plugin(false), using("ns", "data"), true}, {plugin(true), nil, true}, {plugin(true), using("ns", "another"), true},
		{plugin(true), using("elsewhere", "data"), true}, {plugin(true), using("ns", "data"), false},
	} {
		if got := answersByNode(c.pl, table.New(), using("ns", "data"), &framework.Event{OldPod: c.left}); got != c.want {
			t.Errorf("%+v left: %t", c.left, got)
		}
	}
}

// An event about a node's CSI drivers, a volume that was detached from it, or a nomination
// to it, is one about the node.
func TestEventsAboutANode(t *testing.T) {
	w := newWorld(t)
	w.Table.SetNode(&object.Node{Name: "a"})
	w.Table.SetNode(&object.Node{Name: "b"})
	csiNode, attachment := &object.CSINode{}, &object.VolumeAttachment{Node: "b"}
	csiNode.Name = "b"
	for _, e := range []*framework.Event{
		{Resource: framework.ResourceOf(object.CSINodes), NewObject: csiNode}, {Resource: framework.ResourceOf(object.CSINodes), OldObject: csiNode},
		{Resource: framework.ResourceOf(object.VolumeAttachments), OldObject: attachment},
		{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: &object.Pod{NodeName: "b", NominatedNode: "a"}},
		{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: &object.Pod{NominatedNode: "b"}},
	} {
		if row, known := w.rowOf(e); !known || w.Table.Name(row) != "b" {
			t.Errorf("%+v: row %d, known %t", e, row, known)
		}
	}
}

// Replicas of a workload are of one class, but for those of which something is known that
// hints or CouldHelp look at, or of which nothing is known.
func TestReplicasAreOfOneClass(t *testing.T) {
	w := newWorld(t)
	add := func(name, app string) *queue.Entry {
		return w.queue.Add(time.Time{}, &object.Pod{UID: types.UID(name), Name: name, SchedulerName: "s", Labels: map[string]string{"app": app}})
	}
	key := func(e *queue.Entry) string { return string(w.Class(nil, e).Key) }
	a, b, other := add("a", "x"), add("b", "x"), add("other", "y")
	if key(a) == "" || key(a) != key(b) || key(a) == key(other) {
		t.Errorf("keys %q, %q, another's %q", key(a), key(b), key(other))
	}
	w.victims["b"] = false
	if key(a) == key(b) {
		t.Error("a pod that can preempt nobody is like another")
	}
	for what, unlike := range map[string]func(e *queue.Entry){
		"nominated":       func(e *queue.Entry) { w.queue.Nominate(e, "n") },
		"shown to others": func(e *queue.Entry) { e.Pod.API = &v1.Pod{} },
		"claims devices":  func(e *queue.Entry) { e.Pod.Claims = make([]object.PodClaim, 1) },
		"no such profile": func(e *queue.Entry) { e.Pod.SchedulerName = "another" },
		"hosted plugins":  func(*queue.Entry) { w.profile.Host = noHost{} },
	} {
		w = newWorld(t)
		e := add("a", "x")
		if unlike(e); key(e) != "" {
			t.Errorf("%s: key %q", what, key(e))
		}
	}
}

// noHost is a host of plugins that is never called.
type noHost struct{ framework.Host }

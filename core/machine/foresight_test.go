package machine

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/recovered"
	"github.com/berth-scheduler/berth/core/table"
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

// A plugin that reads other objects answers by the node if these have events of their own.
// The pod's claims change without any where a pod that was assumed shares one.
func TestPluginsAnswerByTheNode(t *testing.T) {
	plugin := func(objectsTold bool) *framework.Plugin {
		return &framework.Plugin{
			SignPlugin: framework.SignPlugin{Locality: framework.NodeAndPods, ObjectsTold: objectsTold,
				SignRevision: func(*table.Table, *object.Pod) (uint64, bool) { return 0, false }},
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
		{plugin(false), nil, false}, {plugin(true), nil, true}, {plugin(true), using("ns", "another"), true},
		{plugin(true), using("elsewhere", "data"), true}, {plugin(true), using("ns", "data"), false},
	} {
		if got := answersByNode(c.pl, table.New(), using("ns", "data"), &framework.Event{OldPod: c.left}); got != c.want {
			t.Errorf("told of objects %t, %+v left: %t", c.pl.ObjectsTold, c.left, got)
		}
	}
}

// An event about a node's CSI drivers, a volume that was detached from it, or a nomination
// to it, is one about the node.
func TestEventsAboutANode(t *testing.T) {
	w := newWorld(t)
	w.m.Step(w.now, NodeSet{Node: w.node("a", 10)})
	w.m.Step(w.now, NodeSet{Node: w.node("b", 10)})
	csiNode, attachment := &object.CSINode{}, &object.VolumeAttachment{Node: "b"}
	csiNode.Name = "b"
	for _, e := range []*framework.Event{
		{Resource: framework.ResourceOf(object.CSINodes), NewObject: csiNode}, {Resource: framework.ResourceOf(object.CSINodes), OldObject: csiNode},
		{Resource: framework.ResourceOf(object.VolumeAttachments), OldObject: attachment},
		{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: &object.Pod{NodeName: "b", NominatedNode: "a"}},
		{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: &object.Pod{NominatedNode: "b"}},
	} {
		if row, known := w.m.foresight.rowOf(e); !known || w.m.table.Name(row) != "b" {
			t.Errorf("%+v: row %d, known %t", e, row, known)
		}
	}
}

// A plugin that panics when it is asked whether an event about one node helps a pod is
// told of, and the pod is tried again.
func TestPanicWhenAskedWhetherANodeHelps(t *testing.T) {
	asked := false // from then on it panics
	picky := &framework.Plugin{
		Name:             "Picky",
		EventsToRegister: []framework.ClusterEventWithHint{{Resource: framework.Node, ActionType: framework.UpdateNodeAllocatable}},
		SignPlugin:       framework.SignPlugin{Locality: framework.NodeOnly, Sign: func(key []byte, _ *table.Table, _ *object.Pod) []byte { return key }},
		FilterPlugin: framework.FilterPlugin{
			Filter: func(_ *framework.Input, _ []table.Row, out []framework.Verdict) {
				if asked {
					panic("cannot say")
				}
				for i := range out {
					out[i] = framework.Fits + 1
				}
			},
			Explain: func(*framework.Input, table.Row, framework.Verdict) decision.Blocker {
				return decision.Blocker{Code: decision.Unschedulable}
			},
		},
	}
	w := newWorld(t)
	o := options(w.moody)
	p := o.Profiles[0]
	p.PostFilter, p.PreEnqueue, p.PreFilter, p.Filter = nil, nil, nil, []*framework.Plugin{picky}
	p.Plugins[picky.Name] = picky
	o.Profiles, o.Extenders = []*profile.Profile{p}, nil
	var panics []string
	o.Panicked = func(p *recovered.Panic) { panics = append(panics, p.Error()) }
	m := New(o)
	node, bigger := w.node("n", 1000), w.node("n", 2000)
	pod := w.pod("p", 100)
	for _, e := range []Event{NodeSet{Node: node}, PodSet{Pod: pod}, ScheduleOne{}} {
		m.Step(w.now, e)
	}
	if m.First() != nil {
		t.Fatal("the pod was not rejected")
	}
	asked = true
	m.Step(w.now.Add(5*time.Second), NodeSet{Node: bigger})
	if len(panics) != 1 || !strings.Contains(panics[0], `asking plugin "Picky" whether a node helps a pod panicked: cannot say (foresight_test.go:`) {
		t.Errorf("told of %q", panics)
	}
	if first := m.First(); first == nil || first.UID != pod.UID {
		t.Errorf("the pod that is tried again is %v", first)
	}
}

// Replicas of a workload are alike, but for those of which something is known that hints or
// CouldHelp look at, or of which nothing is known.
func TestReplicasAreAlike(t *testing.T) {
	p := newEvictions(t)
	key := func(name string) string {
		return string(p.foresight.AppendClass(nil, p.pods.byUID[types.UID(name)].entry))
	}
	p.do(preemptible("a", 1, ""), preemptible("b", 1, ""), preemptible("other", 2, ""))
	if a, b := key("a"), key("b"); a == "" || a != b || a == key("other") {
		t.Errorf("keys %q, %q, another's %q", a, b, key("other"))
	}
	p.pods.byUID["b"].noVictims = true
	if key("a") == key("b") {
		t.Error("a pod that can preempt nobody is like another")
	}
	for what, unlike := range map[string]func(e *queue.Entry){
		"nominated":       func(e *queue.Entry) { p.queue.Nominate(e, "n") },
		"shown to others": func(e *queue.Entry) { e.Pod.API = &v1.Pod{} },
		"claims devices":  func(e *queue.Entry) { e.Pod.Claims = make([]object.PodClaim, 1) },
		"no such profile": func(e *queue.Entry) { e.Pod.SchedulerName = "another" },
		"hosted plugins":  func(e *queue.Entry) { p.profiles["s"].Host = noHost{} },
	} {
		p = newEvictions(t)
		p.do(preemptible("a", 1, ""))
		unlike(p.pods.byUID["a"].entry)
		if got := key("a"); got != "" {
			t.Errorf("%s: key %q", what, got)
		}
	}
}

// A replay that begins in the middle of a record knows which pods could preempt nobody, and
// so which of those that wait are alike.
func TestNoVictimsIsInTheSnapshot(t *testing.T) {
	p := newEvictions(t)
	p.do(preemptible("a", 1, ""))
	p.pods.byUID["a"].noVictims = true
	s := p.Snapshot()
	waits := &s.Queue.Entries[0]
	waits.Place, waits.RejectedBy = queue.Unschedulable, []queue.Rejector{{Plugin: "Alone"}}
	restored := newEvictions(t)
	if err := restored.Restore(time.Unix(1000, 0), []Event{preemptible("a", 1, "")}, s); err != nil {
		t.Fatal(err)
	}
	if !restored.pods.byUID["a"].noVictims {
		t.Error("it is lost")
	}
}

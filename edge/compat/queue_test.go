package compat_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/edge/compat"
	. "github.com/berth-scheduler/berth/scheduler/schedulertest"
)

type sorter struct{ named }

func (sorter) Less(a, b fwk.QueuedEntityInfo) bool {
	if a.Type() != fwk.PodKeyType || a.GetPriority() != b.GetPriority() {
		return a.Type() == fwk.PodKeyType && a.GetPriority() > b.GetPriority()
	}
	return queued(a).Name > queued(b).Name
}

// queued returns the pod of an entry of the queue, as a plugin that is not linked with
// kube-scheduler gets at it.
func queued(e fwk.QueuedEntityInfo) *v1.Pod {
	return e.(interface{ GetPodInfo() fwk.PodInfo }).GetPodInfo().GetPod()
}

// QueueSort orders the queue.
func TestQueueSort(t *testing.T) {
	c := New(t, WithPlugin("Sort", with(func(fwk.Handle) fwk.Plugin { return sorter{"Sort"} })),
		WithConfig(func(c *configv1.KubeSchedulerConfiguration) {
			c.Profiles[0].Plugins.MultiPoint.Enabled = nil
			c.Profiles[0].Plugins.QueueSort = configv1.PluginSet{Enabled: []configv1.Plugin{{Name: "Sort"}}, Disabled: []configv1.Plugin{{Name: "*"}}}
		}))
	c.Pause()
	urgent := Pod("a")
	urgent.Spec.Priority = new(int32(7))
	c.Add(Node("a"), Pod("p"), Pod("r"), Pod("q"), urgent)
	c.Resume()
	for _, name := range []string{"p", "q", "r", "a"} {
		c.NodeOf(name)
	}
	if got := fmt.Sprint(c.Order()); got != "[default/a default/r default/q default/p]" {
		t.Errorf("got %s", got)
	}
}

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// A custom resource opens a gate.
func TestEventsOfCustomResources(t *testing.T) {
	g := &gate{named: "G"}
	c := New(t, WithCustomResource(widgets, "Widget"), WithPlugin("G", with(func(fwk.Handle) fwk.Plugin { return g })))
	c.Add(Node("a"), Pod("p"))
	c.Decision("p", 0)
	g.open.Store(true)
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w", "namespace": "default"},
	}}
	if _, err := c.Dynamic().Resource(widgets).Namespace("default").Create(t.Context(), widget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.NodeOf("p")
}

type gate struct {
	named
	open atomic.Bool
}

func (g *gate) PreEnqueue(_ context.Context, p *v1.Pod) *fwk.Status {
	if g.open.Load() {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "not yet")
}

func (g *gate) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{Event: fwk.ClusterEvent{Resource: "widgets.v1.example.com", ActionType: fwk.Add}}}, nil
}

// Activate runs PreEnqueue again.
func TestActivate(t *testing.T) {
	g := &gate{named: "G"}
	var handle fwk.Handle
	c := New(t, WithCustomResource(widgets, "Widget"), WithPlugin("G", with(func(h fwk.Handle) fwk.Plugin { handle = h; return g })))
	p := Pod("p")
	c.Add(Node("a"), p)
	if d := c.Decision("p", 0); d.Result != decision.ResultGated || d.PreEnqueueStatus.Reasons[0] != "not yet" {
		t.Errorf("got %+v", d)
	}
	g.open.Store(true)
	handle.Activate(klog.Background(), map[string]*v1.Pod{"p": p})
	c.NodeOf("p")
}

// hinting rejects pods until a node has a label, and is asked about nodes.
type hinting struct {
	filter
	asked atomic.Int32
}

func (h *hinting) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{
		Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeLabel},
		QueueingHintFn: func(_ klog.Logger, p *v1.Pod, old, now any) (fwk.QueueingHint, error) {
			h.asked.Add(1)
			if node := now.(*v1.Node); node.Labels["ok"] != "" {
				return fwk.Queue, nil
			}
			return fwk.QueueSkip, nil
		},
	}}, nil
}

// Queueing hints bring pods back.
func TestQueueingHints(t *testing.T) {
	h := &hinting{filter: filter{"H", func(_ fwk.CycleState, _ *v1.Pod, n fwk.NodeInfo) *fwk.Status {
		if n.Node().Labels["ok"] == "" {
			return fwk.NewStatus(fwk.Unschedulable, "not ok")
		}
		return nil
	}}}
	c := New(t, WithPlugin("H", with(func(fwk.Handle) fwk.Plugin { return h })))
	c.Add(Node("a"), Pod("p"))
	c.Decision("p", 0)
	c.Add(Node("b"))
	c.Until("the hint is asked", func() bool { return h.asked.Load() > 0 })
	if tried := c.Order(); len(tried) != 1 {
		t.Errorf("tried again for nothing: %q", tried)
	}
	c.Update(Node("b", "ok", "yes"))
	if node := c.NodeOf("p"); node != "b" {
		t.Errorf("got %s", node)
	}
}

// preHinting rejects pods until a node has a label, and names the pods that an event about a
// node concerns.
type preHinting struct {
	hinting
	names func() (fwk.PreQueueingHintResult, error)
	mu    sync.Mutex
	about []string // the nodes that it was asked about, in order
}

func (h *preHinting) EventsToRegister(ctx context.Context) ([]fwk.ClusterEventWithHint, error) {
	events, err := h.hinting.EventsToRegister(ctx)
	events[0].PreQueueingHintFn = func(_ klog.Logger, _, now any) (fwk.PreQueueingHintResult, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.about = append(h.about, now.(*v1.Node).Name)
		return h.names()
	}
	return events, err
}

// With the gate SchedulerPreQueueingHints a PreQueueingHintFn is asked once for an event, and
// the hint just about the pods that it names; about all pods if it fails. Without the gate it
// is not called.
func TestPreQueueingHints(t *testing.T) {
	one := func() (fwk.PreQueueingHintResult, error) {
		return fwk.PreQueueingHintResult{Pods: []types.NamespacedName{{Namespace: "default", Name: "p"}}}, nil
	}
	on := []Option{WithPreQueueingHints()}
	for name, tc := range map[string]struct {
		opts  []Option
		names func() (fwk.PreQueueingHintResult, error)
		hints int32 // how often the hint is called for one event about three pods
		about string
	}{
		"named":    {on, one, 1, "[b]"},
		"none":     {on, func() (fwk.PreQueueingHintResult, error) { return fwk.PreQueueingHintResult{}, nil }, 0, "[b]"},
		"all":      {on, func() (fwk.PreQueueingHintResult, error) { return fwk.PreQueueingHintResult{AllPods: true}, nil }, 3, "[b]"},
		"fails":    {on, func() (r fwk.PreQueueingHintResult, err error) { return r, errors.New("it is broken") }, 3, "[b]"},
		"panics":   {on, func() (fwk.PreQueueingHintResult, error) { panic("it is broken") }, 3, "[b]"},
		"gate off": {nil, one, 3, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &preHinting{names: tc.names, hinting: hinting{filter: filter{"H", func(_ fwk.CycleState, _ *v1.Pod, n fwk.NodeInfo) *fwk.Status {
				if n.Node().Labels["ok"] == "" {
					return fwk.NewStatus(fwk.Unschedulable, "not ok")
				}
				return nil
			}}}}
			c := New(t, append(tc.opts, WithPlugin("H", with(func(fwk.Handle) fwk.Plugin { return h })))...)
			c.Add(Node("a"), Pod("o"), Pod("p"), Pod("q"))
			for _, pod := range []string{"o", "p", "q"} {
				c.Decision(pod, 0)
			}
			c.Add(Node("b")) // and returns when its event is done
			h.mu.Lock()
			defer h.mu.Unlock()
			if asked := h.asked.Load(); asked != tc.hints || fmt.Sprint(h.about) != tc.about {
				t.Errorf("the hint was asked %d times, the other about %v", asked, h.about)
			}
		})
	}
}

// registered rejects the pod p, and counts the events of one kind that it is told of.
type registered struct {
	filter
	event fwk.ClusterEvent
	told  atomic.Int32
}

func (r *registered) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{Event: r.event, QueueingHintFn: func(klog.Logger, *v1.Pod, any, any) (fwk.QueueingHint, error) {
		r.told.Add(1)
		return fwk.QueueSkip, nil
	}}}, nil
}

// Of events about pods and nodes a plugin is told those that it registered for: a new node tells
// it nothing of taints, and pods are those with a node, the rejected one, or others.
func TestRegisteredEvents(t *testing.T) {
	causes := map[string]func(c *Cluster){
		"a node": func(c *Cluster) { c.Add(Node("b", "new", "yes")) },
		"a taint": func(c *Cluster) {
			n := Node("a")
			n.Spec.Taints = []v1.Taint{{Key: "k", Effect: v1.TaintEffectPreferNoSchedule}}
			c.Update(n)
			c.Add(Node("b", "new", "yes")) // it is known once the taint is
		},
		"a preemption policy": func(c *Cluster) {
			n := Node("a")
			n.Spec.PodPreemptionPolicy = &v1.NodePodPreemptionPolicy{DisableResizePreemption: []string{"o"}}
			c.Update(n)
			c.Add(Node("b", "new", "yes"))
		},
		"another pod": func(c *Cluster) {
			q := Pod("q", "k", "v")
			q.Spec.NodeName = "a"
			c.Update(q)
		},
		"the pod":      func(c *Cluster) { c.Update(Pod("p", "k", "v")) },
		"another goes": func(c *Cluster) { c.Delete(Pod("q")) },
	}
	for _, tc := range []struct {
		event fwk.ClusterEvent
		told  []string
	}{
		{fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}, []string{"a node"}},
		{fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.UpdateNodeTaint}, []string{"a taint"}},
		{fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.UpdateNodePreemptionPolicy}, []string{"a preemption policy"}},
		{fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Update}, []string{"a taint", "a preemption policy"}},
		{fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.UpdatePodLabel}, []string{"another pod", "the pod"}},
		{fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.UpdatePodLabel}, []string{"another pod"}},
		{fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}, []string{"another goes"}},
		{fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}, []string{"the pod"}},
		{fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Add | fwk.Delete}, nil},
		{fwk.ClusterEvent{Resource: fwk.UnscheduledPod, ActionType: fwk.Update}, nil},
		{fwk.ClusterEvent{Resource: fwk.CompositePodGroup, ActionType: fwk.All}, nil},
	} {
		for cause, change := range causes {
			r := &registered{event: tc.event, filter: filter{"R", func(_ fwk.CycleState, p *v1.Pod, _ fwk.NodeInfo) *fwk.Status {
				if p.Name == "p" {
					return fwk.NewStatus(fwk.Unschedulable, "no")
				}
				return nil
			}}}
			c := New(t, WithPlugin("R", with(func(fwk.Handle) fwk.Plugin { return r })))
			c.Add(Node("a"), Pod("q"))
			c.NodeOf("q")
			c.Add(Pod("p"))
			c.Decision("p", 0)
			r.told.Store(0)
			change(c)
			last := Pod("last") // the change was told before it is placed
			ofNode := cause == "a node" || cause == "a taint" || cause == "a preemption policy"
			if ofNode { // the watch of nodes may be behind that of pods
				last.Spec.NodeSelector = map[string]string{"new": "yes"}
			}
			c.Add(last)
			c.NodeOf("last")
			if ofNode && cause != "a node" && tc.event.Resource == fwk.Node && tc.event.ActionType&fwk.Add != 0 {
				r.told.Add(-1) // of node b
			}
			if got, want := r.told.Load() > 0, slices.Contains(tc.told, cause); got != want {
				t.Errorf("%s, registered for %s: told %t", cause, tc.event.Label(), got)
			}
		}
	}
}

// alien is of the shape of PodsToActivate, as kube-scheduler's own type is.
type alien struct {
	sync.Mutex
	Map map[string]*v1.Pod
}

func (a *alien) Clone() fwk.StateData { return a }

// sibling has the other pod tried next, by way of the CycleState, and counts on no event.
type sibling struct {
	*gate
	of  string // the pod that activates
	pod *v1.Pod
}

func (s sibling) Permit(_ context.Context, state fwk.CycleState, p *v1.Pod, _ string) (*fwk.Status, time.Duration) {
	if p.Name != s.of {
		return nil, 0
	}
	v, err := state.Read(compat.PodsToActivateKey)
	if err != nil {
		return fwk.AsStatus(err), 0
	}
	a, ok := v.(*alien)
	if !ok {
		return fwk.NewStatus(fwk.Error, fmt.Sprintf("it is a %T", v)), 0
	}
	s.open.Store(true)
	a.Lock()
	defer a.Unlock()
	a.Map["any name"] = s.pod
	return nil, 0
}

func (s sibling) PreEnqueue(ctx context.Context, p *v1.Pod) *fwk.Status {
	if p.Name == s.of {
		return nil
	}
	return s.gate.PreEnqueue(ctx, p)
}

// A plugin finds the type that the main gave under PodsToActivateKey, and what it puts there is
// activated.
func TestPodsToActivateOfAnotherType(t *testing.T) {
	p, q := Pod("p"), Pod("q")
	s := sibling{&gate{named: "S"}, "q", p}
	c := New(t, WithCustomResource(widgets, "Widget"), WithPlugin("S", with(func(fwk.Handle) fwk.Plugin { return s })),
		WithPodsToActivate(func() fwk.StateData { return &alien{Map: map[string]*v1.Pod{}} }))
	c.Add(Node("a"), p)
	c.Decision("p", 0)
	c.Add(q)
	c.NodeOf("q")
	c.NodeOf("p")
}

// stateless is no PodsToActivate.
type (
	stateless struct{ sync.Mutex }
	misplaced struct {
		sync.Mutex
		Map map[string]string
	}
	unlocked struct{ Map map[string]*v1.Pod }
)

func (s *stateless) Clone() fwk.StateData { return s }
func (s *misplaced) Clone() fwk.StateData { return s }
func (s *unlocked) Clone() fwk.StateData  { return s }

func TestCheckPodsToActivate(t *testing.T) {
	for _, made := range []fwk.StateData{nil, (*alien)(nil), &alien{}, &stateless{}, &misplaced{}, &unlocked{Map: map[string]*v1.Pod{}}} {
		if err := compat.CheckPodsToActivate(func() fwk.StateData { return made }); err == nil {
			t.Errorf("%T is taken", made)
		} else {
			t.Log(err)
		}
	}
	if err := compat.CheckPodsToActivate(func() fwk.StateData { return &alien{Map: map[string]*v1.Pod{}} }); err != nil {
		t.Error(err)
	}
}

// What PreEnqueue failed with is said once.
func TestPreEnqueueFails(t *testing.T) {
	for what, want := range map[string]string{"fails": "it is broken", "panics": `panicked: boom`} {
		t.Run(what, func(t *testing.T) {
			c := New(t, WithPlugin("B", with(func(fwk.Handle) fwk.Plugin {
				return &everyPoint{named: "B", answer: func(c call) answer {
					switch {
					case c.at == "PreEnqueue" && what == "panics":
						panic("boom")
					case c.at == "PreEnqueue":
						return answer{status: fwk.AsStatus(errors.New("it is broken"))}
					}
					return answer{}
				}}
			})))
			c.Add(Node("a"), Pod("p"))
			if got := explain.Message(c.Decision("p", 0)); strings.Count(got, want) != 1 {
				t.Errorf("got %s", got)
			}
		})
	}
}

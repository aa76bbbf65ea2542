package compat_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	. "github.com/berth-scheduler/berth/scheduler/schedulertest"
)

// deed is what a plugin does at a point, and what it answers then.
type deed = func() (node string, score int64, s *fwk.Status)

// breaking is a plugin of every point that does so at one of them, for pods with the
// label evil, and nothing else.
func breaking(at string, do deed) Option {
	return WithPlugin("B", with(func(fwk.Handle) fwk.Plugin {
		return &everyPoint{named: "B", answer: func(c call) answer { return broken(c, at, do) }}
	}))
}

func broken(c call, at string, do deed) answer {
	evil := c.pod != nil && c.pod.Labels["evil"] != ""
	switch {
	case evil && c.at == at:
		node, score, s := do()
		for i := range c.scores {
			c.scores[i] = fwk.NodeScore{Name: "no-such-node", Score: score}
		}
		return answer{status: s, node: node, score: score, wait: -time.Hour}
	case evil && c.at == "Filter" && at == "PostFilter":
		return answer{status: fwk.NewStatus(fwk.Unschedulable, "for PostFilter")}
	case evil && c.at == "Permit" && at == "Unreserve":
		return answer{status: fwk.AsStatus(errors.New("for Unreserve"))}
	case c.at == "Bind":
		return answer{status: fwk.NewStatus(fwk.Skip)}
	}
	return answer{wait: -time.Hour}
}

// The default binder comes after the plugin, which skips pods that are not its own.
func bindersInOrder(c *configv1.KubeSchedulerConfiguration) {
	c.Profiles[0].Plugins.Bind.Enabled = []configv1.Plugin{{Name: "B"}, {Name: "DefaultBinder"}}
	c.Profiles[0].Plugins.PostFilter.Disabled = []configv1.Plugin{{Name: "DefaultPreemption"}}
}

// What becomes of the pod that a plugin deals badly with.
const (
	fails   = "fails"   // its attempt
	nowhere = "nowhere" // can it go: PostFilter makes no room
	placed  = "placed"  // it is, all the same
	stays   = "stays"   // it does, where it is
)

// Whatever a plugin does at whatever point is an error of that pod's attempt at most;
// the pods that come next are placed. The time is virtual, so that no call takes long but
// those that hang.
func TestEveryPointIsContained(t *testing.T) {
	var panics deed = func() (string, int64, *fwk.Status) { panic("boom") }
	var hangs deed // until the test ends
	var exits deed = func() (string, int64, *fwk.Status) { runtime.Goexit(); return "", 0, nil }
	var oddCode deed = func() (string, int64, *fwk.Status) { return "", 0, fwk.NewStatus(fwk.Code(99), "odd") }
	var empty deed = func() (string, int64, *fwk.Status) { return "", 0, &fwk.Status{} }
	decided := []string{"PreFilter", "Filter", "PreScore", "Score", "NormalizeScore", "Reserve", "Permit"}
	for _, tc := range []struct {
		what   string
		do     deed
		points []string
		want   string
	}{
		{"panics", panics, append(decided, "PreBindPreFlight", "PreBind", "Bind", "Unreserve"), fails},
		{"exits", exits, append(decided, "PreBindPreFlight", "PreBind", "Bind", "Unreserve"), fails},
		{"hangs", hangs, append(decided, "Unreserve"), fails},
		{"panics", panics, []string{"PostFilter"}, nowhere},
		{"exits", exits, []string{"PostFilter"}, nowhere},
		{"hangs", hangs, []string{"PostFilter"}, nowhere},
		{"odd code", oddCode, append(decided, "PreBindPreFlight", "PreBind", "Bind"), fails},
		{"empty status", empty, append(decided, "PreBindPreFlight", "PreBind"), placed},
		{"panics", panics, []string{"PostBind"}, placed},
		{"exits", exits, []string{"PostBind"}, placed},
		{"hangs", hangs, []string{"PostBind"}, placed},
		{"panics", panics, []string{"PreEnqueue"}, stays},
		{"exits", exits, []string{"PreEnqueue"}, stays},
		{"hangs", hangs, []string{"PreEnqueue", "PreBindPreFlight", "PreBind", "Bind"}, stays},
		{"score of -1", func() (string, int64, *fwk.Status) { return "", -1, nil }, []string{"Score", "NormalizeScore"}, fails},
		{"score of 101", func() (string, int64, *fwk.Status) { return "", 101, nil }, []string{"Score", "NormalizeScore"}, fails},
		{"unknown node", func() (string, int64, *fwk.Status) { return "no-such-node", 0, nil }, []string{"PostFilter"}, nowhere},
		{"says that it bound", func() (string, int64, *fwk.Status) { return "", 0, nil }, []string{"Bind"}, stays},
	} {
		for _, at := range tc.points {
			t.Run(tc.what+" "+at, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { checkContained(t, at, tc.do, tc.want) })
			})
		}
	}
}

// checkContained has the plugin do so at the point, or hang where do is nil, and
// checks what becomes of its pod and of others.
func checkContained(t *testing.T, at string, do deed, want string) {
	if do == nil {
		hang := make(chan struct{})
		t.Cleanup(func() { close(hang) })
		do = func() (string, int64, *fwk.Status) { <-hang; return "", 0, nil }
	}
	c := New(t, WithTimeout(50*time.Millisecond), WithConfig(bindersInOrder), breaking(at, do))
	c.Add(Node("a"), Node("b"), Pod("evil", "evil", "yes"))
	switch want {
	case placed:
		c.NodeOf("evil")
	case fails:
		// After a hang PreEnqueue is refused: that may be the record.
		if d := c.Failure("evil"); d.Result != decision.ResultError && (d.PreEnqueueStatus == nil || d.PreEnqueueStatus.Code != decision.Error) {
			t.Errorf("got %s: %v", d.Result, d.Err)
		}
	case nowhere:
		if d := c.Failure("evil"); d.Result != decision.ResultUnschedulable && (d.PreEnqueueStatus == nil || d.PreEnqueueStatus.Code != decision.Error) {
			t.Errorf("got %s: %v", d.Result, d.Err)
		}
	}
	c.Add(Pod("good"))
	c.NodeOf("good")
	if want != placed && c.Pod("evil").Spec.NodeName != "" {
		t.Error("the pod was bound")
	}
	c.Delete(c.Pod("evil"))
	c.Add(Pod("later"))
	c.NodeOf("later")
}

// A goroutine that ends while many nodes are asked about at once lets no node pass.
func TestFilterEndsOneOfManyGoroutines(t *testing.T) {
	c := New(t, filtering(func(p *v1.Pod, n fwk.NodeInfo) *fwk.Status {
		if p.Name == "evil" && n.Node().Name == "n7" {
			runtime.Goexit()
		}
		if p.Name == "evil" {
			return fwk.NewStatus(fwk.Unschedulable, "no")
		}
		return nil
	}))
	for i := range 300 {
		c.Add(Node(fmt.Sprint("n", i)))
	}
	c.Add(Pod("evil"))
	if d := c.Decision("evil", 0); d.Result != decision.ResultError {
		t.Errorf("got %s, %v", d.Result, d.Tallies)
	}
	c.Add(Pod("good"))
	c.NodeOf("good")
}

// rude rejects pods, and its queueing hint and its order of pods panic.
type rude struct{ hinting }

func (*rude) Less(_, _ fwk.QueuedEntityInfo) bool { panic("boom") }

func (r *rude) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{
		Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add},
		QueueingHintFn: func(klog.Logger, *v1.Pod, any, any) (fwk.QueueingHint, error) {
			r.asked.Add(1)
			panic("boom")
		},
	}}, nil
}

// A hint that panics calls the pod; where the order of pods panics they come in the
// order of their arrival.
func TestQueuePluginsPanic(t *testing.T) {
	r := &rude{hinting{filter: filter{"R", func(_ fwk.CycleState, p *v1.Pod, n fwk.NodeInfo) *fwk.Status {
		if p.Name == "p" && n.Node().Name != "b" {
			return fwk.NewStatus(fwk.Unschedulable, "not b")
		}
		return nil
	}}}}
	c := New(t, WithPlugin("R", with(func(fwk.Handle) fwk.Plugin { return r })), WithConfig(func(c *configv1.KubeSchedulerConfiguration) {
		c.Profiles[0].Plugins.QueueSort = configv1.PluginSet{Enabled: []configv1.Plugin{{Name: "R"}}, Disabled: []configv1.Plugin{{Name: "*"}}}
	}))
	c.Pause()
	c.Add(Node("a"), Pod("p"), Pod("q"), Pod("r"))
	c.Resume()
	c.NodeOf("q")
	c.NodeOf("r")
	c.Decision("p", 0)
	if got := fmt.Sprint(c.Order()[:3]); got != "[default/p default/q default/r]" {
		t.Errorf("got %s", got)
	}
	c.Add(Node("b"))
	if node := c.NodeOf("p"); node != "b" || r.asked.Load() == 0 {
		t.Errorf("on %s, the hint was asked %d times", node, r.asked.Load())
	}
}

// vandal changes all that it gets to see of nodes and pods.
type vandal struct{ named }

func (vandal) PreFilter(_ context.Context, _ fwk.CycleState, p *v1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	p.Spec.NodeSelector = nil
	for i, n := range nodes {
		n.Node().Labels["zone"], n.Node().Spec.Taints = "x", nil
		n.Node().Status.Allocatable[v1.ResourceCPU] = n.Node().Status.Allocatable[v1.ResourceMemory]
		n.GetAllocatable().SetMaxResource(n.Node().Status.Allocatable)
		for j, on := range n.GetPods() {
			on.GetPod().Labels["app"] = "none"
			on.GetPod().Spec.Containers = nil
			n.GetPods()[j] = nil
		}
		nodes[i] = nil
	}
	return &fwk.PreFilterResult{NodeNames: sets.New("a", "b", "c")}, nil
}
func (vandal) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// What a plugin changes of nodes and pods that it was lent changes no decision of
// Berth's own plugins: neither selectors, nor taints, nor room, nor anti-affinity.
func TestVandal(t *testing.T) {
	c := New(t, WithPlugin("V", with(func(fwk.Handle) fwk.Plugin { return vandal{"V"} })))
	small := Node("a", "zone", "x")
	small.Status.Allocatable[v1.ResourceCPU] = Pod("x").Spec.Containers[0].Resources.Requests[v1.ResourceCPU]
	tainted := Node("b", "zone", "x")
	tainted.Spec.Taints = []v1.Taint{{Key: "k", Effect: v1.TaintEffectNoSchedule}}
	c.Add(small, tainted, Node("c", "zone", "y"))
	p, q := Pod("p", "app", "one"), Pod("q", "app", "one")
	p.Spec.NodeSelector = map[string]string{"zone": "x"}
	q.Spec.NodeSelector = map[string]string{"zone": "x"}
	c.Add(p)
	if node := c.NodeOf("p"); node != "a" {
		t.Errorf("p is on %s", node)
	}
	c.Add(q)
	d := c.Decision("q", 0)
	if d.Result != decision.ResultUnschedulable || len(d.Tallies) != 3 {
		t.Errorf("got %s: %+v", d.Result, d.Tallies)
	}
}

// stuck lets pods pass PreEnqueue, and hangs in its first Filter.
type stuck struct {
	named
	hung     atomic.Bool
	released chan struct{}
}

func (s *stuck) PreEnqueue(context.Context, *v1.Pod) *fwk.Status { return nil }

func (s *stuck) Filter(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) *fwk.Status {
	if !s.hung.Swap(true) {
		<-s.released
	}
	return nil
}

// While a call for a pod has not returned no plugin is asked about it, PreEnqueue either,
// which gates it. Once the call has returned the pod is tried, although nothing happens.
// The time is virtual, so that no other call takes long.
func TestGatedByAHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{named: "S", released: make(chan struct{})}
		c := New(t, WithTimeout(50*time.Millisecond), WithPlugin("S", with(func(fwk.Handle) fwk.Plugin { return s })))
		c.Add(Node("a"), Pod("p"))
		if d := c.Decision("p", 1); d.Result != decision.ResultGated {
			t.Errorf("after the attempt that hangs: %s", d.Result)
		}
		close(s.released)
		c.NodeOf("p")
	})
}

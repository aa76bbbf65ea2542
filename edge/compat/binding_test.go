package compat_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	. "github.com/berth-scheduler/berth/scheduler/schedulertest"
)

// gang lets pods go when there are three.
type gang struct {
	named
	handle     fwk.Handle
	size       int
	unreserved atomic.Int32
}

func (g *gang) Reserve(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status { return nil }
func (g *gang) Unreserve(context.Context, fwk.CycleState, *v1.Pod, string)           { g.unreserved.Add(1) }

func (g *gang) Permit(_ context.Context, _ fwk.CycleState, p *v1.Pod, node string) (*fwk.Status, time.Duration) {
	if p.Spec.NodeName != node {
		return fwk.AsStatus(fmt.Errorf("the pod says %q", p.Spec.NodeName)), 0
	}
	waiting := 0
	g.handle.IterateOverWaitingPods(func(w fwk.WaitingPod) {
		if w.GetPod().Labels["gang"] == p.Labels["gang"] {
			waiting++
		}
	})
	if waiting+1 < g.size {
		return fwk.NewStatus(fwk.Wait), time.Minute
	}
	g.handle.IterateOverWaitingPods(func(w fwk.WaitingPod) {
		if w.GetPod().Labels["gang"] == p.Labels["gang"] {
			w.Allow(g.Name())
		}
	})
	return nil, 0
}

// A gang is bound together; one that a goroutine of the plugin rejects is tried again.
func TestGangByPermit(t *testing.T) {
	var g *gang
	c := New(t, WithPlugin("Gang", with(func(h fwk.Handle) fwk.Plugin { g = &gang{named: "Gang", handle: h, size: 3}; return g })))
	c.Add(Node("a"), Node("b"), Pod("p", "gang", "x"), Pod("q", "gang", "x"))
	if d := c.Decision("q", 0); d.Result != decision.ResultWaiting {
		t.Fatalf("got %s", d.Result)
	}
	if c.Pod("p").Spec.NodeName != "" {
		t.Error("bound alone")
	}
	c.Until("p waits", func() bool { return g.handle.GetWaitingPod("p") != nil })
	go g.handle.GetWaitingPod("p").Reject("Gang", "not now")
	c.Until("p was rejected", func() bool { return g.unreserved.Load() == 1 })
	c.Add(Pod("r", "gang", "x"), Pod("s", "gang", "x"))
	for _, name := range []string{"q", "r", "s"} {
		c.Until(name+" is bound", func() bool { return c.Pod(name).Spec.NodeName != "" })
	}
}

// holder holds each pod for a minute.
type holder struct{ named }

func (holder) Permit(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.Status, time.Duration) {
	return fwk.NewStatus(fwk.Wait), time.Minute
}

// A waiting pod tells which plugins hold it now, not when it was asked for.
func TestPendingPlugins(t *testing.T) {
	var h fwk.Handle
	c := New(t, WithPlugin("A", with(func(handle fwk.Handle) fwk.Plugin { h = handle; return holder{"A"} })),
		WithPlugin("B", with(func(fwk.Handle) fwk.Plugin { return holder{"B"} })))
	c.Add(Node("n"), Pod("p"))
	c.Until("p waits", func() bool { return h.GetWaitingPod("p") != nil })
	waiting := h.GetWaitingPod("p")
	for _, step := range []struct {
		allow string
		want  []string
	}{{"", []string{"A", "B"}}, {"A", []string{"B"}}, {"B", []string{}}} {
		if step.allow != "" {
			h.IterateOverWaitingPods(func(w fwk.WaitingPod) { w.Allow(step.allow) })
		}
		if got := waiting.GetPendingPlugins(); !slices.Equal(got, step.want) {
			t.Errorf("after Allow(%q): %v hold it, want %v", step.allow, got, step.want)
		}
	}
}

type preBinder struct {
	named
	preBind func(ctx context.Context, p *v1.Pod, node string) *fwk.Status
	skip    bool
}

func (b *preBinder) PreBindPreFlight(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	if b.skip {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return nil, nil
}

func (b *preBinder) PreBind(ctx context.Context, _ fwk.CycleState, p *v1.Pod, node string) *fwk.Status {
	return b.preBind(ctx, p, node)
}

// A PreBind that blocks holds up no other pod, and its room stays taken.
func TestBlockingPreBind(t *testing.T) {
	release := make(chan struct{})
	c := New(t, WithPlugin("B", with(func(fwk.Handle) fwk.Plugin {
		return &preBinder{named: "B", preBind: func(_ context.Context, p *v1.Pod, _ string) *fwk.Status {
			switch p.Name {
			case "slow":
				<-release
			case "fails":
				return fwk.AsStatus(errors.New("no"))
			case "panics":
				panic("boom")
			}
			return nil
		}}
	})))
	c.Add(Node("a"), Pod("slow"), Pod("p"), Pod("fails"), Pod("panics"))
	c.NodeOf("p")
	for _, name := range []string{"fails", "panics"} {
		if d := c.Failure(name); d.Result != decision.ResultError || !strings.Contains(d.Err.Error(), `running PreBind plugin "B"`) {
			t.Errorf("%s: %s, %v", name, d.Result, d.Err)
		}
	}
	if c.Pod("slow").Spec.NodeName != "" {
		t.Error("bound before PreBind returned")
	}
	close(release)
	c.NodeOf("slow")
}

// A preempted pod's PreBind is canceled.
func TestPreemptionCancelsPreBind(t *testing.T) {
	c := New(t, WithPlugin("B", with(func(fwk.Handle) fwk.Plugin {
		return &preBinder{named: "B", preBind: func(ctx context.Context, p *v1.Pod, _ string) *fwk.Status {
			if p.Labels["slow"] != "" {
				<-ctx.Done()
				return fwk.AsStatus(ctx.Err())
			}
			return nil
		}}
	})))
	small := Node("a")
	small.Status.Allocatable[v1.ResourcePods] = *small.Status.Allocatable.Pods()
	small.Status.Allocatable[v1.ResourceCPU] = Pod("x").Spec.Containers[0].Resources.Requests[v1.ResourceCPU]
	c.Add(small, Pod("slow", "slow", "yes"))
	c.Decision("slow", 0)
	high := Pod("high")
	priority := int32(1000)
	high.Spec.Priority = &priority
	c.Add(high)
	c.NodeOf("high")
}

type binder struct {
	named
	handle fwk.Handle
	bound  atomic.Int32
}

func (b *binder) Bind(ctx context.Context, _ fwk.CycleState, p *v1.Pod, node string) *fwk.Status {
	if p.Labels["mine"] == "" {
		return fwk.NewStatus(fwk.Skip)
	}
	now, err := b.handle.ClientSet().CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
	if err != nil {
		return fwk.AsStatus(err)
	}
	now = now.DeepCopy()
	now.Spec.NodeName = node
	now.Annotations = map[string]string{"bound-by": "me"}
	_, err = b.handle.ClientSet().CoreV1().Pods(p.Namespace).Update(ctx, now, metav1.UpdateOptions{})
	if p.Labels["mine"] == "lies" {
		return fwk.AsStatus(errors.New("the reply was lost"))
	}
	return fwk.AsStatus(err)
}

func (b *binder) PostBind(context.Context, fwk.CycleState, *v1.Pod, string) { b.bound.Add(1) }

// A Bind of its own binds those that it does not skip. One that was bound all the same
// when Bind failed stays bound.
func TestOwnBind(t *testing.T) {
	var b *binder
	c := New(t, WithPlugin("B", with(func(h fwk.Handle) fwk.Plugin { b = &binder{named: "B", handle: h}; return b })),
		WithConfig(func(c *configv1.KubeSchedulerConfiguration) {
			c.Profiles[0].Plugins.Bind.Enabled = []configv1.Plugin{{Name: "B"}, {Name: "DefaultBinder"}}
		}))
	c.Add(Node("a"), Pod("p", "mine", "yes"), Pod("q"), Pod("r", "mine", "lies"))
	for _, name := range []string{"p", "q", "r"} {
		c.NodeOf(name)
	}
	if c.Pod("p").Annotations["bound-by"] != "me" || c.Pod("q").Annotations["bound-by"] != "" {
		t.Error("bound by another")
	}
	c.Until("PostBind is told", func() bool { return b.bound.Load() == 3 })
}

// liar says that it bound the pod, the first time that it is asked.
type liar struct {
	named
	lies, told atomic.Int32
}

func (l *liar) Bind(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status {
	if l.lies.Add(1) == 1 {
		return nil
	}
	return fwk.NewStatus(fwk.Skip)
}

func (l *liar) PostBind(context.Context, fwk.CycleState, *v1.Pod, string) { l.told.Add(1) }

// A pod that Bind did not bind, whatever it said, keeps its room until a read of the pod
// shows that it is not bound. Then it is tried again. The time is virtual.
func TestBindThatBindsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &liar{named: "L"}
		c := New(t, WithPlugin("L", with(func(fwk.Handle) fwk.Plugin { return l })), WithConfig(func(c *configv1.KubeSchedulerConfiguration) {
			c.Profiles[0].Plugins.Bind.Enabled = []configv1.Plugin{{Name: "L"}, {Name: "DefaultBinder"}}
		}))
		large := Pod("p")
		large.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("3")
		next := large.DeepCopy()
		next.Name, next.UID = "q", "q"
		c.Add(Node("n"), large)
		c.Decision("p", 0)
		c.Add(next)
		time.Sleep(25 * time.Second)
		if d := c.Decision("q", 0); d.Result != decision.ResultUnschedulable || l.told.Load() > 0 {
			t.Errorf("q: %s; PostBind was called %d times", d.Result, l.told.Load())
		}
		time.Sleep(5*time.Second + 500*time.Millisecond)
		const why = `running Bind plugin "L": it returned Success, and 30s later the pod is not bound`
		if d := c.Failure("p"); d.Result != decision.ResultError || d.Err.Error() != why {
			t.Errorf("p: %s, %v", d.Result, d.Err)
		}
		time.Sleep(20 * time.Second)
		if c.Pod("p").Spec.NodeName+c.Pod("q").Spec.NodeName != "n" || l.told.Load() != 1 {
			t.Errorf("p is on %q, q on %q; PostBind was called %d times", c.Pod("p").Spec.NodeName, c.Pod("q").Spec.NodeName, l.told.Load())
		}
	})
}

// A plugin that rejects a pod at PreBind or Bind makes it unschedulable for that reason alone.
// As in kube-scheduler no event is awaited: the pod is tried again after a backoff.
func TestRejectedAtBinding(t *testing.T) {
	for _, at := range []string{"PreBind", "Bind"} {
		t.Run(at, func(t *testing.T) {
			var asked atomic.Int32
			c := New(t, WithConfig(bindersInOrder), WithPlugin("B", with(func(fwk.Handle) fwk.Plugin {
				return &everyPoint{named: "B", answer: func(c call) answer {
					switch {
					case c.at == at && asked.Add(1) == 1:
						return answer{status: fwk.NewStatus(fwk.Unschedulable, "not here", "nor now")}
					case c.at == "Bind":
						return answer{status: fwk.NewStatus(fwk.Skip)}
					}
					return answer{wait: -time.Hour}
				}}
			})))
			c.Add(Node("a"), Pod("p"))
			d := c.Failure("p")
			if got := explain.Message(d); d.Result != decision.ResultUnschedulable || got != "not here, nor now" || len(d.RejectedBy) > 0 {
				t.Errorf("got %s by %v: %s", d.Result, d.RejectedBy, got)
			}
			if reason := explain.Condition(d).Reason; reason != v1.PodReasonUnschedulable {
				t.Errorf("the condition's reason is %s", reason)
			}
			c.NodeOf("p")
		})
	}
}

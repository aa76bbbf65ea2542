package compat_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	. "github.com/berth-scheduler/berth/scheduler/schedulertest"
)

// slowPostFilter nominates pods to node a, once it may.
type slowPostFilter struct {
	named
	handle  fwk.Handle
	started chan struct{}
	release chan struct{}
	reason  string
}

func (f *slowPostFilter) PostFilter(ctx context.Context, _ fwk.CycleState, _ *v1.Pod, m fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	f.started <- struct{}{}
	select {
	case <-f.release:
	case <-ctx.Done():
		f.reason = ctx.Err().Error()
		return nil, fwk.AsStatus(ctx.Err())
	}
	f.reason = m.Get("a").Message()
	return &fwk.PostFilterResult{NominatingInfo: &fwk.NominatingInfo{NominatedNodeName: "a", NominatingMode: fwk.ModeOverride}}, nil
}

// newSlowPostFilter is a cluster with node a, too small for the pod big, which waits
// for PostFilter.
func newSlowPostFilter(t *testing.T) (*Cluster, *slowPostFilter) {
	f := &slowPostFilter{named: "P", started: make(chan struct{}, 100), release: make(chan struct{})}
	c := New(t, WithPlugin("P", with(func(h fwk.Handle) fwk.Plugin { f.handle = h; return f })),
		WithConfig(func(c *configv1.KubeSchedulerConfiguration) {
			c.Profiles[0].Plugins.PostFilter.Disabled = []configv1.Plugin{{Name: "DefaultPreemption"}}
		}))
	big := Pod("big", "big", "yes")
	big.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = Node("x").Status.Allocatable[v1.ResourceMemory]
	c.Add(Node("a"), big)
	<-f.started
	return c, f
}

// A PostFilter that blocks does not hold up other pods. It is told why the nodes were
// rejected even when they have changed since, and its nomination counts.
func TestBlockingPostFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newSlowPostFilter(t)
		start := time.Now()
		c.Add(Pod("p"), Pod("q"))
		c.NodeOf("p")
		c.NodeOf("q")
		if took := time.Since(start); took > time.Second {
			t.Errorf("other pods were held up for %v", took)
		}
		tainted := Node("a")
		tainted.Spec.Unschedulable = true
		c.Update(tainted)
		synctest.Wait()
		close(f.release)
		d := c.Decision("big", 0)
		if d.Result != decision.ResultPreempting && d.Result != decision.ResultUnschedulable || d.NominatedNode != "a" {
			t.Errorf("got %s, nominated to %q: %v", d.Result, d.NominatedNode, d.PostFilter)
		}
		if f.reason != "Insufficient cpu" {
			t.Errorf("the plugin was told %q", f.reason)
		}
	})
}

// A PostFilter that never returns is given up, and its pod tried again.
func TestPostFilterNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newSlowPostFilter(t)
		d := c.Decision("big", 0)
		if want := `plugin "P" did not return from PostFilter within 10s`; len(d.PostFilter) != 1 || d.PostFilter[0] != want {
			t.Errorf("got %s: %q", d.Result, d.PostFilter)
		}
	})
}

// The plugin of a pod that is gone, or bound by another, is told by its context.
func TestPostFilterForNothing(t *testing.T) {
	for name, meanwhile := range map[string]func(*Cluster){
		"gone": func(c *Cluster) { c.Delete(c.Pod("big")) },
		"bound": func(c *Cluster) {
			bound := c.Pod("big").DeepCopy()
			bound.Spec.NodeName = "a"
			c.Update(bound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f := newSlowPostFilter(t)
				meanwhile(c)
				synctest.Wait()
				if f.reason != "context canceled" || len(f.started) != 0 {
					t.Errorf("the plugin saw %q, and was called %d times more", f.reason, len(f.started))
				}
			})
		})
	}
}

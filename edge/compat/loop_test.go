package compat_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/edge/compat"
	. "github.com/berth-scheduler/berth/scheduler/schedulertest"
)

// What goes wrong in PreFilterExtensions while preemption tries a node ends the attempt,
// and holds up no other pod.
func TestExtensionsAreContained(t *testing.T) {
	for what, do := range map[string]func(hang chan struct{}){
		"panics": func(chan struct{}) { panic("boom") },
		"exits":  func(chan struct{}) { runtime.Goexit() },
		"hangs":  func(hang chan struct{}) { <-hang },
	} {
		for _, at := range []string{"PreFilterExtensions", "AddPod", "RemovePod"} {
			t.Run(fmt.Sprint(what, " ", at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					hang := make(chan struct{})
					t.Cleanup(func() { close(hang) })
					var on atomic.Bool
					e := &everyPoint{named: "E", answer: func(c call) answer {
						if on.Load() && c.at == at {
							do(hang)
						}
						return answer{}
					}}
					c := New(t, WithTimeout(50*time.Millisecond), WithPlugin("E", with(func(fwk.Handle) fwk.Plugin { return e })))
					big := func(name string, priority int32) *v1.Pod {
						p := Pod(name)
						p.Spec.Priority = &priority
						p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("3900m")
						return p
					}
					c.Add(Node("a"), big("low", 0))
					c.NodeOf("low")
					on.Store(true)
					c.Add(big("high", 10))
					if d := c.Failure("high"); d.Result == decision.ResultScheduled {
						t.Errorf("got %s", d.Result)
					}
					c.Add(Pod("good"))
					c.NodeOf("good")
				})
			})
		}
	}
}

// locker is a Permit plugin that does not unlock the pods to activate.
type locker struct {
	named
	locked atomic.Pointer[compat.PodsToActivate]
	next   *v1.Pod
}

func (l *locker) Permit(_ context.Context, state fwk.CycleState, p *v1.Pod, _ string) (*fwk.Status, time.Duration) {
	if p.Name == "evil" {
		v, _ := state.Read(compat.PodsToActivateKey)
		pods := v.(*compat.PodsToActivate)
		pods.Lock()
		pods.Map["next"] = l.next
		l.locked.Store(pods)
	}
	return nil, 0
}

// A plugin that holds the lock of the pods to activate does not hold up the loop.
func TestPodsToActivateAreLocked(t *testing.T) {
	l := &locker{named: "L", next: Pod("next")}
	c := New(t, WithPlugin("L", with(func(fwk.Handle) fwk.Plugin { return l })))
	c.Add(Node("a"), Pod("evil"))
	c.Until("the lock is held", func() bool { return l.locked.Load() != nil })
	c.Add(Pod("good"))
	c.NodeOf("good")
	c.NodeOf("evil")
	l.locked.Load().Unlock()
}

// eraser is a Reserve plugin that writes nil where the pods to activate are.
type eraser struct{ named }

func (eraser) Reserve(_ context.Context, state fwk.CycleState, _ *v1.Pod, _ string) *fwk.Status {
	state.Write(compat.PodsToActivateKey, nil)
	if v, err := state.Read(compat.PodsToActivateKey); v != nil || err != nil {
		return fwk.AsStatus(fmt.Errorf("read %v, %w", v, err))
	}
	return nil
}
func (eraser) Unreserve(context.Context, fwk.CycleState, *v1.Pod, string) {}

// A plugin may write nil to its state, also in the place of the pods to activate, which
// the loop reads.
func TestNilState(t *testing.T) {
	c := New(t, WithPlugin("E", with(func(fwk.Handle) fwk.Plugin { return eraser{"E"} })))
	c.Add(Node("a"), Pod("p"))
	if d := c.Decision("p", 0); d.Result != decision.ResultScheduled {
		t.Errorf("got %s: %v", d.Result, d.Err)
	}
	c.NodeOf("p")
}

package compat_test

import (
	"context"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	. "github.com/berth-scheduler/berth/scheduler/schedulertest"
)

// One call ends a wait, and it alone answers true. Reject has the pod wait for what may
// help it, Preempt has it tried again after a backoff, and neither reaches the next attempt
// of the pod.
func TestWaitEndsOnce(t *testing.T) {
	var h fwk.Handle
	c := New(t, WithPlugin("H", with(func(handle fwk.Handle) fwk.Plugin { h = handle; return holder{"H"} })))
	c.Add(Node("n"), Pod("p"))
	waits := func() (w fwk.WaitingPod) {
		c.Until("p waits", func() bool { w = h.GetWaitingPod("p"); return w != nil })
		return w
	}
	over := func(when string, w fwk.WaitingPod) {
		if w.Reject("H", "again") || w.Preempt("H", "again") {
			t.Errorf("%s: the wait ends twice", when)
		}
	}

	first := waits()
	if !first.Reject("H", "not now") {
		t.Error("the first rejection does not count")
	}
	over("rejected", first)
	c.Until("p is rejected", func() bool { return h.GetWaitingPod("p") == nil })
	over("gone", first)
	if d := c.Failure("p"); d.Result != decision.ResultUnschedulable || !slices.Equal(d.RejectedBy, []string{"H"}) {
		t.Errorf("rejected: %s by %v", d.Result, d.RejectedBy)
	}

	c.Add(Node("m"))
	second := waits()
	over("another attempt", first)
	first.Allow("H")
	if got := second.GetPendingPlugins(); !slices.Equal(got, []string{"H"}) {
		t.Errorf("the second attempt is held by %v", got)
	}
	if got := first.GetPendingPlugins(); len(got) > 0 {
		t.Errorf("the first attempt is held by %v", got)
	}
	if !second.Preempt("H", "preempted") {
		t.Error("the preemption does not count")
	}
	over("preempted", second)

	third := waits() // nothing happened that may help the pod
	if d := c.Failure("p"); d.Result != decision.ResultError || d.Err.Error() != "waiting on permit for pod: preempted" || len(d.RejectedBy) > 0 {
		t.Errorf("preempted: %s, %v, by %v", d.Result, d.Err, d.RejectedBy)
	}
	third.Allow("H")
	over("allowed", third)
	c.NodeOf("p")
	over("bound", third)
}

// judge lets the Permit of the pod "judge" call upon the pod that waits.
type judge struct {
	holder
	call func()
}

func (j *judge) Permit(ctx context.Context, s fwk.CycleState, p *v1.Pod, node string) (*fwk.Status, time.Duration) {
	if p.Name != "judge" {
		return j.holder.Permit(ctx, s, p, node)
	}
	j.call()
	return nil, 0
}

// What a plugin says of a waiting pod while the loop waits for the plugin counts at once.
func TestWaitEndsWithinAStep(t *testing.T) {
	for name, test := range map[string]struct {
		call   func(fwk.WaitingPod) []bool
		answer []bool
		result decision.Result // of p's attempt
	}{
		"rejected": {func(w fwk.WaitingPod) []bool { return []bool{w.Reject("J", ""), w.Preempt("J", ""), w.Reject("J", "")} },
			[]bool{true, false, false}, decision.ResultUnschedulable},
		"preempted": {func(w fwk.WaitingPod) []bool { return []bool{w.Preempt("J", ""), w.Reject("J", "")} },
			[]bool{true, false}, decision.ResultError},
		"allowed": {func(w fwk.WaitingPod) []bool {
			w.Allow("J")
			return []bool{len(w.GetPendingPlugins()) == 0, w.Reject("J", "")}
		}, []bool{true, false}, decision.ResultScheduled},
		"allowed too late": {func(w fwk.WaitingPod) []bool {
			ended := w.Reject("J", "")
			w.Allow("J")
			return []bool{ended, w.Reject("J", "")}
		}, []bool{true, false}, decision.ResultUnschedulable},
	} {
		t.Run(name, func(t *testing.T) {
			var got []bool
			c := New(t, WithPlugin("J", with(func(h fwk.Handle) fwk.Plugin {
				return &judge{holder{"J"}, func() { got = test.call(h.GetWaitingPod("p")) }}
			})))
			c.Add(Node("n"), Pod("p"))
			c.Decision("p", 0)
			c.Add(Pod("judge"))
			c.NodeOf("judge")
			if !slices.Equal(got, test.answer) {
				t.Errorf("got %v, want %v", got, test.answer)
			}
			if test.result == decision.ResultScheduled {
				c.NodeOf("p")
			} else if d := c.Failure("p"); d.Result != test.result {
				t.Errorf("p: %s, want %s", d.Result, test.result)
			}
		})
	}
}

package compat

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// forever is a PreBind plugin that waits until it is canceled.
type forever struct{}

func (forever) Name() string { return "Forever" }

func (forever) PreBindPreFlight(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	return nil, nil
}

func (forever) PreBind(ctx context.Context, _ fwk.CycleState, _ *v1.Pod, _ string) *fwk.Status {
	<-ctx.Done()
	return fwk.AsStatus(ctx.Err())
}

// PreBind plugins are canceled also where their goroutine has not begun yet, as on a
// busy machine. The pod's next attempt is another one.
func TestCancelBeforePreBind(t *testing.T) { synctest.Test(t, cancelBeforePreBind) }

func cancelBeforePreBind(t *testing.T) {
	h := New(Options{})
	host := &Host{Hosts: h, name: "default", cycles: map[types.UID]*cycle{}, byName: map[string]*hostedPlugin{"Forever": newHostedPlugin("Forever", forever{})}}
	h.profiles[host.name] = host
	p := &object.Pod{UID: "u", Namespace: "ns", Name: "p"}
	attempt := func() machine.RunPlugins {
		host.cycles[p.UID] = host.newCycle(p)
		return machine.RunPlugins{Pod: p, Node: "n", Profile: host.name, Point: "PreBind", Plugins: []string{"Forever"}, Attempt: host.Attempt(p.UID)}
	}
	ended := func(e machine.RunPlugins) chan machine.Event {
		reply := make(chan machine.Event, 1)
		go func() { reply <- h.Run(t.Context(), e) }()
		return reply
	}
	preempted := errors.New("preempted")
	first := attempt()
	h.Cancel(p.UID, preempted)
	if s := (<-ended(first)).(machine.PreBindReply).Status; s == nil || s.Err != preempted {
		t.Errorf("got %+v", s)
	}
	host.End(p.UID)
	second := ended(attempt())
	synctest.Wait()
	if len(second) > 0 || h.PreBinding() != 1 {
		t.Error("the next attempt is canceled, too")
	}
	if !h.Cancel(p.UID, preempted) {
		t.Error("it cannot be canceled")
	}
	<-second
}

// told is a loop that notes what it is told.
type told struct{ events []machine.Event }

func (*told) Inspect(context.Context, func()) error { return errors.New("no loop") }
func (l *told) Report(e machine.Event)              { l.events = append(l.events, e) }
func (l *told) Post(e machine.Event)                { l.Report(e) }

// idle is a PreBind plugin that may have nothing to do.
type idle struct{ status *fwk.Status }

func (idle) Name() string { return "Idle" }

func (x idle) PreBindPreFlight(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	return nil, x.status
}

func (idle) PreBind(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status { return nil }

// As in kube-scheduler the node that a pod is about to be bound to is shown in the API
// where a PreBind plugin has something to do. A request for each pod otherwise would halve
// what is bound.
func TestPreBindBegins(t *testing.T) {
	for name, tc := range map[string]struct {
		status *fwk.Status
		want   int
	}{"works": {nil, 1}, "skips": {fwk.NewStatus(fwk.Skip), 0}, "fails": {fwk.AsStatus(errors.New("no")), 0}} {
		t.Run(name, func(t *testing.T) {
			h, l := New(Options{}), &told{}
			h.Connect(nil, l)
			host := &Host{Hosts: h, name: "default", cycles: map[types.UID]*cycle{}, byName: map[string]*hostedPlugin{"Idle": newHostedPlugin("Idle", idle{tc.status})}}
			h.profiles[host.name] = host
			p := &object.Pod{UID: "u", Namespace: "ns", Name: "p"}
			host.cycles[p.UID] = host.newCycle(p)
			h.Run(t.Context(), machine.RunPlugins{Pod: p, Node: "n", Profile: host.name, Point: "PreBind", Plugins: []string{"Idle"}, Attempt: host.Attempt(p.UID)})
			if len(l.events) != tc.want || tc.want == 1 && l.events[0] != (machine.PreBindBegins{UID: p.UID}) {
				t.Errorf("told of %v", l.events)
			}
		})
	}
}

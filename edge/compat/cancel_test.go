package compat

import (
	"context"
	"errors"
	"testing"
	"time"

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
func TestCancelBeforePreBind(t *testing.T) {
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
	select {
	case reply := <-ended(first):
		if s := reply.(machine.PreBindReply).Status; s == nil || s.Err != preempted {
			t.Errorf("got %+v", s)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("it waits")
	}
	host.End(p.UID)
	second := ended(attempt())
	for h.PreBinding() == 0 {
		time.Sleep(time.Millisecond)
	}
	select {
	case <-second:
		t.Error("the next attempt is canceled, too")
	case <-time.After(20 * time.Millisecond):
	}
	if !h.Cancel(p.UID, preempted) {
		t.Error("it cannot be canceled")
	}
	<-second
}

package api

import (
	"errors"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/records"
	"github.com/berth-scheduler/berth/edge/why"
)

// How often a binding was refused since an attempt ended otherwise is counted. A cause, and a pod that waits, name
// what failed where no plugin rejected the pod.
func TestRefusalsAreCounted(t *testing.T) {
	f := stuck(t)
	f.pod("denied", "1")
	refuse := func(why string) {
		f.step(machine.ScheduleOne{})
		f.step(machine.BindReply{UID: "denied", Result: machine.BindRefused, Err: errors.New(why)})
		f.now = f.now.Add(time.Minute) // its backoff
		f.step(machine.Tick{})
	}
	refuse("a webhook says no")
	refuse(`pods "denied" is forbidden: the policy says no`)
	refuse(`pods "denied" is forbidden: the policy says no`)
	var a why.Answer
	f.get("why?pod=shop/denied", &a)
	if r := a.Refusal; r == nil || r.Times != 3 || r.More || r.Message != `pods "denied" is forbidden: the policy says no` || r.Last.Sub(r.Since) < 2*time.Minute {
		t.Fatalf("%+v", a.Refusal)
	}
	if len(a.Queue.History) < 3 {
		t.Errorf("history: %+v", a.Queue.History)
	}
	var s Summary
	f.get("summary", &s)
	if len(s.Blocking) != 2 || s.Blocking[1].Plugin != "binding" && s.Blocking[0].Plugin != "binding" {
		t.Errorf("causes: %+v", s.Blocking)
	}
	var list PendingList
	if f.get("pending?reason=binding", &list); list.Total != 1 || list.Pods[0].FailedBy != "binding" || list.Pods[0].Pod != "shop/denied" {
		t.Errorf("pods: %+v", list)
	}
	a = why.Answer{}
	if f.get("why?pod=shop/big", &a); a.Refusal != nil {
		t.Errorf("of a pod that fits nowhere: %+v", a.Refusal)
	}
	f.step(machine.ScheduleOne{})
	f.step(machine.BindReply{UID: "denied", Result: machine.BindDone})
	a = why.Answer{}
	if f.get("why?pod=shop/denied", &a); a.Refusal != nil {
		t.Errorf("of a pod that was bound: %+v", a.Refusal)
	}
}

// What failed is read off the message of the attempt.
func TestFailedBy(t *testing.T) {
	for message, want := range map[string]string{
		`running Bind plugin "DefaultBinder": no`:                                   "binding",
		`running PreBind plugin "VolumeBinding": binding volumes: context deadline`: "VolumeBinding",
		`running "NodeResourcesFit" filter plugin: no`:                              "NodeResourcesFit",
		"extender x: no": "error",
	} {
		r := records.Record{Type: records.Attempt, Result: "Error", Message: message}
		if got := r.FailedBy(); got != want {
			t.Errorf("%s: %s, want %s", message, got, want)
		}
		r.Result = "Unschedulable"
		if got := r.FailedBy(); got != "" {
			t.Errorf("of what did not fail: %s", got)
		}
	}
}

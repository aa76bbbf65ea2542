package api

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/berth-scheduler/berth/core/machine"
)

// The status is that of any process, also one that does not lead. The reason of a refusal is
// for those who may get the path that has it.
func TestStatus(t *testing.T) {
	f := stuck(t)
	f.leads = false
	var s Status
	if code, _ := f.get("status", &s); code != http.StatusOK || s.Kind != "Status" || s.Leads || s.Queue.Unschedulable != 1 || s.Nodes != 2 || s.Lease != "kube-system/berth" ||
		s.Configuration.Refused.Reason != "bad file" || s.Rates.Bound != 1 {
		t.Errorf("%d %+v", code, s)
	}
	f.reader = readerOf(nil, false)
	s = Status{}
	if f.get("status", &s); s.Configuration.Refused == nil || s.Configuration.Refused.Reason != "" {
		t.Errorf("a reader without the right: %+v", s.Configuration.Refused)
	}
	f.leads = true
	var sum Summary
	if f.get("summary", &sum); sum.Refused == nil || sum.Refused.Reason != "" {
		t.Errorf("a reader without the right: %+v", sum.Refused)
	}
}

// Where the scheduling loop does not answer, the status says so, and has the rest.
func TestStatusOfAStuckLoop(t *testing.T) {
	f := stuck(t)
	f.options.Inspect = func(context.Context, func(*machine.Machine)) error { return errors.New("it is at one step") }
	f.serve()
	var s Status
	if code, body := f.get("status", &s); code != http.StatusOK || s.Stuck != "the scheduling loop does not answer: it is at one step" || s.Lease == "" || s.Nodes != 0 {
		t.Errorf("%d %s", code, body)
	}
}

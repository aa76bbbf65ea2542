package kube

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/logs/logstest"
)

// refuser refuses to bind.
type refuser struct{ Extenders }

func (refuser) Bind(context.Context, machine.BindByExtender, func() bool) (machine.BindResult, error) {
	return machine.BindRefused, errors.New("no")
}

// Failures of extenders are logged in kube-scheduler's words, and their scores.
func TestExtenderLines(t *testing.T) {
	s, replied := &logstest.Sink{Verbosity: 10}, make(chan machine.Event, 1)
	x, _ := executorOn(t, newWire(t, nil).config(), always)
	x.logger, x.report = s.Logger(), func(e machine.Event) { replied <- e }
	x.Extend(refuser{}, []machine.Extender{{Name: "http://x", Ignorable: true}})
	for _, verb := range []machine.Verb{machine.Filter, machine.Prioritize, machine.Preempt} {
		x.logAnswer(machine.CallExtender{Pod: testPod("a"), Verb: verb}, &machine.ExtenderReply{Err: errors.New("no")})
	}
	x.logAnswer(machine.CallExtender{Pod: testPod("a"), Verb: machine.Prioritize}, &machine.ExtenderReply{Scores: map[string]int64{"n": 3}})
	x.Do(machine.BindByExtender{Pod: testPod("a"), Node: "n"})
	<-replied
	for _, row := range logstest.Missing("edge/kube, TestExtenderLines", s.Lines()) {
		t.Errorf("never written: %s", row)
	}
}

// A status patch that the API refuses is logged in kube-scheduler's words.
func TestStatusPatchLine(t *testing.T) {
	s := &logstest.Sink{}
	x, _ := executorOn(t, newWire(t, func(w http.ResponseWriter, _ *http.Request, _ string) { answer(w, 403, nil) }).config(), always)
	x.logger = s.Logger()
	x.patch(t.Context(), machine.PatchStatus{Pod: testPod("a"), Nominated: new(string)})
	for _, row := range logstest.Missing("edge/kube, TestStatusPatchLine", s.Lines()) {
		t.Errorf("never written: %s", row)
	}
}

package compat_test

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
)

// everyPoint is a plugin of every point of an attempt, which one function answers for.
type everyPoint struct {
	named
	answer func(c call) answer
	plain  bool // it has no NormalizeScore
}

// call is what the plugin is told at a point: what is not told there is nil.
type call struct {
	at       string
	state    fwk.CycleState
	pod      *v1.Pod
	nodes    []fwk.NodeInfo // one, where the call is about one
	statuses fwk.NodeToStatusReader
	scores   fwk.NodeScoreList
}

// answer is what the plugin says. The zero answer lets the pod go on; PostFilter makes no
// room then.
type answer struct {
	status *fwk.Status
	node   string        // the only one that PreFilter lets pass, or that PostFilter nominates
	score  int64         // of Score
	wait   time.Duration // of Permit
}

func (e *everyPoint) status(at string, state fwk.CycleState, p *v1.Pod, nodes ...fwk.NodeInfo) *fwk.Status {
	return e.answer(call{at: at, state: state, pod: p, nodes: nodes}).status
}

func (e *everyPoint) PreEnqueue(_ context.Context, p *v1.Pod) *fwk.Status {
	return e.status("PreEnqueue", nil, p)
}
func (e *everyPoint) PreFilter(_ context.Context, state fwk.CycleState, p *v1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	a := e.answer(call{at: "PreFilter", state: state, pod: p, nodes: nodes})
	if a.node == "" {
		return nil, a.status
	}
	return &fwk.PreFilterResult{NodeNames: sets.New(a.node)}, a.status
}
func (e *everyPoint) PreFilterExtensions() fwk.PreFilterExtensions {
	e.answer(call{at: "PreFilterExtensions"})
	return e
}
func (e *everyPoint) AddPod(_ context.Context, state fwk.CycleState, p *v1.Pod, _ fwk.PodInfo, n fwk.NodeInfo) *fwk.Status {
	return e.status("AddPod", state, p, n)
}
func (e *everyPoint) RemovePod(_ context.Context, state fwk.CycleState, p *v1.Pod, _ fwk.PodInfo, n fwk.NodeInfo) *fwk.Status {
	return e.status("RemovePod", state, p, n)
}
func (e *everyPoint) Filter(_ context.Context, state fwk.CycleState, p *v1.Pod, n fwk.NodeInfo) *fwk.Status {
	return e.status("Filter", state, p, n)
}
func (e *everyPoint) PostFilter(_ context.Context, state fwk.CycleState, p *v1.Pod, m fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	a := e.answer(call{at: "PostFilter", state: state, pod: p, statuses: m})
	switch {
	case a.node != "":
		return &fwk.PostFilterResult{NominatingInfo: &fwk.NominatingInfo{NominatedNodeName: a.node, NominatingMode: fwk.ModeOverride}}, a.status
	case a.status == nil:
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	return nil, a.status
}
func (e *everyPoint) PreScore(_ context.Context, state fwk.CycleState, p *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	return e.status("PreScore", state, p, nodes...)
}
func (e *everyPoint) Score(_ context.Context, state fwk.CycleState, p *v1.Pod, n fwk.NodeInfo) (int64, *fwk.Status) {
	a := e.answer(call{at: "Score", state: state, pod: p, nodes: []fwk.NodeInfo{n}})
	return a.score, a.status
}
func (e *everyPoint) ScoreExtensions() fwk.ScoreExtensions {
	if e.plain {
		return nil
	}
	return e
}
func (e *everyPoint) NormalizeScore(_ context.Context, state fwk.CycleState, p *v1.Pod, list fwk.NodeScoreList) *fwk.Status {
	return e.answer(call{at: "NormalizeScore", state: state, pod: p, scores: list}).status
}
func (e *everyPoint) Reserve(_ context.Context, state fwk.CycleState, p *v1.Pod, _ string) *fwk.Status {
	return e.status("Reserve", state, p)
}
func (e *everyPoint) Unreserve(_ context.Context, state fwk.CycleState, p *v1.Pod, _ string) {
	_ = e.status("Unreserve", state, p)
}
func (e *everyPoint) Permit(_ context.Context, state fwk.CycleState, p *v1.Pod, _ string) (*fwk.Status, time.Duration) {
	a := e.answer(call{at: "Permit", state: state, pod: p})
	return a.status, a.wait
}
func (e *everyPoint) PreBindPreFlight(_ context.Context, state fwk.CycleState, p *v1.Pod, _ string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	return nil, e.status("PreBindPreFlight", state, p)
}
func (e *everyPoint) PreBind(_ context.Context, state fwk.CycleState, p *v1.Pod, _ string) *fwk.Status {
	return e.status("PreBind", state, p)
}
func (e *everyPoint) Bind(_ context.Context, state fwk.CycleState, p *v1.Pod, _ string) *fwk.Status {
	return e.status("Bind", state, p)
}
func (e *everyPoint) PostBind(_ context.Context, state fwk.CycleState, p *v1.Pod, _ string) {
	_ = e.status("PostBind", state, p)
}

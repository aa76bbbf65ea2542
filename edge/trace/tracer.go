package trace

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/loop"
	"github.com/berth-scheduler/berth/edge/metrics"
)

// mostOpen bounds the attempts that are followed at a time. While there are so many, no
// other is.
const mostOpen = 4096

// Stopwatch times plugins.
type Stopwatch interface {
	// TimeStep has the next step timed.
	TimeStep()
	// Laps lists what was timed in the last.
	Laps() []metrics.Lap
}

// Tracer is a loop.Machine that makes spans of the attempts of the one behind it. It
// belongs to the loop's goroutine.
type Tracer struct {
	loop.Machine
	inspect   *machine.Machine
	tracer    trace.Tracer
	stopwatch Stopwatch
	attempts  map[types.UID]*attempt
}

// New returns a tracer around the machine.
func New(m *machine.Machine, p trace.TracerProvider, w Stopwatch) *Tracer {
	return &Tracer{Machine: m, inspect: m, tracer: p.Tracer("github.com/berth-scheduler/berth"), stopwatch: w, attempts: map[types.UID]*attempt{}}
}

// attempt is one that is followed.
type attempt struct {
	context context.Context // of root
	root    trace.Span
	binding context.Context // of the binding cycle; nil before it
	cycle   trace.Span      // the binding cycle
	sent    trace.Span      // what is waited for: a call, a write, a binding; nil: nothing
}

// Step takes the step, and follows what becomes of attempts.
func (t *Tracer) Step(now time.Time, e machine.Event) []machine.Effect {
	if _, is := e.(machine.ScheduleOne); is {
		return t.scheduleOne(now, e)
	}
	effects := t.Machine.Step(now, e)
	if len(t.attempts) > 0 {
		t.replied(e)
		t.follow(effects)
	}
	return effects
}

// scheduleOne takes a step that begins an attempt.
func (t *Tracer) scheduleOne(now time.Time, e machine.Event) []machine.Effect {
	p := t.inspect.First()
	a := t.begin(now, p)
	if a != nil {
		t.stopwatch.TimeStep()
	}
	start := time.Now()
	effects := t.Machine.Step(now, e)
	if a != nil {
		t.end(p.UID) // of whose end nobody told
		t.attempts[p.UID] = a
		t.cycleSpans(a, start, time.Now())
	}
	if len(t.attempts) > 0 {
		t.follow(effects)
	}
	return effects
}

// begin begins the attempt that is due for the pod; nil: it is not followed.
func (t *Tracer) begin(now time.Time, p *object.Pod) *attempt {
	if p == nil || len(t.attempts) >= mostOpen {
		return nil
	}
	state := t.inspect.Entry(p.UID).State()
	a := &attempt{}
	a.context, a.root = t.tracer.Start(context.Background(), "SchedulingAttempt", trace.WithNewRoot(), trace.WithTimestamp(state.Queued))
	if !a.root.IsRecording() {
		return nil
	}
	a.root.SetAttributes(attribute.String("k8s.namespace.name", p.Namespace), attribute.String("k8s.pod.name", p.Name),
		attribute.String("k8s.pod.uid", string(p.UID)), attribute.String("scheduler.profile", p.SchedulerName), attribute.Int("scheduler.attempt", state.Attempts+1))
	_, queue := t.tracer.Start(a.context, "Queue", trace.WithTimestamp(state.Queued))
	queue.End(trace.WithTimestamp(now))
	return a
}

// cycleSpans shows the scheduling cycle that has ended.
func (t *Tracer) cycleSpans(a *attempt, start, end time.Time) {
	ctx, cycle := t.tracer.Start(a.context, "SchedulingCycle", trace.WithTimestamp(start))
	for _, point := range byPoint(t.stopwatch.Laps()) {
		in, span := t.tracer.Start(ctx, point.name, trace.WithTimestamp(point.first))
		for _, l := range point.laps {
			_, plugin := t.tracer.Start(in, l.Plugin, trace.WithTimestamp(l.First), trace.WithAttributes(
				attribute.Int64("scheduler.plugin.nanoseconds", l.Took.Nanoseconds()), attribute.Int("scheduler.plugin.calls", l.Calls)))
			if l.Point != "Filter" && l.Point != "Score" { // these answer for each node
				plugin.SetAttributes(attribute.String("scheduler.plugin.status", l.Status.String()))
			}
			plugin.End(trace.WithTimestamp(l.Last))
		}
		span.End(trace.WithTimestamp(point.last))
	}
	cycle.End(trace.WithTimestamp(end))
}

// follow shows what is sent for the attempts, and ends those that failed.
func (t *Tracer) follow(effects []machine.Effect) {
	for _, effect := range effects {
		switch e := effect.(type) {
		case machine.AttemptDone:
			t.decided(e.Decision)
		case machine.CallExtender:
			t.send(e.Pod.UID, "Extender", attribute.String("scheduler.extender.verb", string(e.Verb)))
		case machine.Write:
			if e.Call == 0 {
				t.send(e.Pod.UID, "PreBind", attribute.Int("scheduler.writes", len(e.Writes)))
			}
		case machine.RunPlugins:
			if e.Point != "PostBind" {
				t.send(e.Pod.UID, e.Point, attribute.StringSlice("scheduler.plugins", e.Plugins))
			}
		case machine.Bind:
			t.send(e.Pod.UID, "Bind", attribute.String("k8s.node.name", e.Node))
		case machine.BindByExtender:
			t.send(e.Pod.UID, "Bind", attribute.String("k8s.node.name", e.Node))
		}
	}
}

// decided takes in the record of the attempt.
func (t *Tracer) decided(d *decision.Decision) {
	a := t.attempts[d.UID]
	if a == nil {
		return
	}
	a.root.SetAttributes(attribute.String("scheduler.result", string(d.Result)),
		attribute.Int("scheduler.nodes", d.NodesTotal), attribute.Int("scheduler.nodes.feasible", d.NodesFeasible))
	switch d.Result {
	case decision.ResultScheduled, decision.ResultWaiting:
		a.root.SetAttributes(attribute.String("k8s.node.name", d.Node), attribute.Int64("scheduler.score", d.Score), attribute.Int("scheduler.ties", d.Ties))
		a.binding, a.cycle = t.tracer.Start(a.context, "BindingCycle")
		return
	case decision.ResultError:
		a.root.RecordError(d.Err)
		a.root.SetStatus(codes.Error, string(d.Result))
	case decision.ResultPreempting:
		a.root.SetAttributes(attribute.String("scheduler.node.nominated", d.NominatedNode), attribute.Int("scheduler.victims", len(d.Victims)))
	}
	a.root.SetAttributes(attribute.StringSlice("scheduler.rejected_by", d.RejectedBy))
	t.end(d.UID)
}

// send shows that something is sent for the attempt, until the reply.
func (t *Tracer) send(uid types.UID, name string, about attribute.KeyValue) {
	a := t.attempts[uid]
	if a == nil {
		return
	}
	a.endSent()
	in := a.binding
	if in == nil {
		in = a.context
	}
	_, a.sent = t.tracer.Start(in, name, trace.WithAttributes(about))
}

// replied ends what the event replies to, and attempts that are over.
func (t *Tracer) replied(e machine.Event) {
	switch e := e.(type) {
	case machine.BindReply:
		t.bound(e)
	case machine.WriteReply:
		if e.Call == 0 {
			t.answered(e.UID, e.Err)
		}
	case machine.ExtenderReply:
		t.answered(e.UID, e.Err)
	case machine.PreBindReply:
		if e.Status != nil {
			t.answered(e.UID, e.Status.Err)
			return
		}
		t.answered(e.UID, nil)
	case machine.PodSet:
		if e.Pod.NodeName != "" || e.Pod.Terminal {
			t.end(e.Pod.UID)
		}
	case machine.ReadReply:
		if e.Err == nil && (e.Pod == nil || e.Pod.NodeName != "") {
			t.end(e.UID)
		}
	case machine.PodGone:
		t.end(e.UID)
	}
}

func (t *Tracer) bound(e machine.BindReply) {
	t.answered(e.UID, e.Err)
	if e.Result == machine.BindDone {
		t.end(e.UID)
	}
}

// answered ends what was sent for the attempt. Where it failed, the machine says what
// becomes of the attempt.
func (t *Tracer) answered(uid types.UID, err error) {
	a := t.attempts[uid]
	if a == nil || a.sent == nil {
		return
	}
	if err != nil {
		a.sent.RecordError(err)
		a.sent.SetStatus(codes.Error, err.Error())
	}
	a.endSent()
}

func (a *attempt) endSent() {
	if a.sent != nil {
		a.sent.End()
		a.sent = nil
	}
}

// end ends the attempt, if it is followed.
func (t *Tracer) end(uid types.UID) {
	a := t.attempts[uid]
	if a == nil {
		return
	}
	delete(t.attempts, uid)
	a.endSent()
	if a.cycle != nil {
		a.cycle.End()
	}
	a.root.End()
}

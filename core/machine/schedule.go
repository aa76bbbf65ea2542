package machine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
)

// errAwaitsReply is why a pod is not scheduled that came back under its UID, as etcd was
// restored, while a reply from before is outstanding. Replies name only the pod, so they
// could be taken for those of the new cycle.
var errAwaitsReply = errors.New("the pod was gone, and what was sent for it before that has no answer yet")

// ErrNoNodes is why no pod is scheduled in a cluster without nodes.
var ErrNoNodes = errors.New(explain.NoNodes)

// scheduleOne pops the first pod of the queue and runs its scheduling cycle, or that of its pod
// group. If a node is found, it starts the binding cycle. A pod that is being deleted leaves the
// queue untried. The first call makes the machine lead. It pops nothing while replies to evictions
// are awaited (Options.WaitForEvictions).
func (m *Machine) scheduleOne() {
	if !m.leads {
		m.leads = true
		m.quotas.lead()
		m.groups.lead()
	}
	m.groups.statuses.lead(m.profiles)
	if m.evictions.awaited() {
		return
	}
	e := m.queue.Pop(m.now)
	if e == nil {
		return
	}
	ps := e.Owner.(*podState)
	if members := e.Group(); members != nil {
		m.groups.scheduleGroup(slices.Clone(members))
		return
	}
	if e.Pod.Terminating {
		m.attempts.skip(ps)
		return
	}
	m.overcommits.counting = true
	a := m.attempts.start(ps)
	a.record.NodesTotal = m.table.Live()
	var c *bindingCycle
	if err := m.guard.run("scheduling cycle", "", func() { c = m.scheduling.schedulePod(a) }); err != nil {
		m.scheduling.failAfterPanic(a, err)
		return
	}
	if c != nil && c.phase == reserve {
		m.bindings.runPreBind(c)
	}
}

// schedulingCycles runs scheduling cycles, from when a pod is popped until it is assumed or
// requeued: it decides, calls extenders, and runs PostFilter plugins.
type schedulingCycles struct {
	*step
	options     *Options
	profiles    profiles
	unlisted    unlistedKinds
	budgets     *budgets
	engine      *engine.Engine
	guard       *guard
	pods        *pods
	attempts    *attempts
	nominations *nominations
	preemptors  *preemptors
	bindings    *bindingCycles
	evictions   *evictions
	extenders   *extenderCycles
}

// schedulePod decides on the pod and assumes it on the best node. It returns nil if the
// attempt has ended or waits for extenders or a PostFilter plugin.
func (d *schedulingCycles) schedulePod(a *attempt) *bindingCycle {
	if s := d.cannotTry(a); s != nil {
		d.bindings.fail(a, s)
		return nil
	}
	if extenders := d.extenders.of(a.pod); extenders != nil {
		return d.startExtenderCycle(a, extenders)
	}
	o := d.engine.Decide(a.request, d.nominations)
	d.attempts.stepDone("Computing predicates and prioritizing done")
	if o.Row < 0 && (o.Rejected == nil || o.Rejected.Code.Rejects()) {
		d.attempts.recordRejection(a, o)
		n, waits := d.runPostFilter(a, o, 0, nominating{keep: true}, nil)
		d.attempts.stepDone("Running PostFilter plugins done")
		if !waits {
			d.attempts.requeue(a, n)
		}
		return nil
	}
	c := d.assumeChosen(a, o)
	d.engine.Reuse(o)
	return c
}

// cannotTry returns why the pod cannot be decided on at all: there are no nodes, an old reply is
// outstanding, or objects that its plugins read cannot be listed. It returns nil if it can.
func (d *schedulingCycles) cannotTry(a *attempt) *decision.Status {
	switch {
	case d.table.Live() == 0:
		return &decision.Status{Code: decision.UnschedulableAndUnresolvable, Err: ErrNoNodes}
	case a.state.ended != nil:
		return &decision.Status{Code: decision.Error, Err: errAwaitsReply}
	}
	return d.unlisted.undecidable(d.table, a.profile, a.pod)
}

// assumeChosen assumes the pod on the node in the outcome and returns its binding cycle. It fails
// the attempt and returns nil if a Score plugin failed, or if a Reserve or Permit plugin rejects
// the pod.
func (d *schedulingCycles) assumeChosen(a *attempt, o *engine.Outcome) *bindingCycle {
	d.attempts.recordNodes(a, o)
	if o.Rejected != nil {
		d.bindings.fail(a, o.Rejected)
		return nil
	}
	a.record.Score, a.record.Ties = o.Score, o.Ties
	return d.bindings.assume(a, o.Row)
}

// attempt is one try to place one pod, from when it is popped from the queue to the end
// of its binding cycle.
type attempt struct {
	state   *podState
	pod     *object.Pod // the version that is scheduled, whatever the API shows since
	profile *profile.Profile
	request *engine.Request
	record  *decision.Decision
	binding *bindingCycle // preallocated; in use once the pod is assumed
	// noVictims becomes state.noVictims when the attempt ends.
	noVictims bool
	// spared is set if strict budgets keep victims whose eviction would help.
	spared bool
	// grouped is set if the pod is tried in the cycle of its group.
	grouped bool
}

// attempts starts attempts, fills their records, and ends those without a node.
type attempts struct {
	*step
	options     *Options
	profiles    profiles
	pods        *pods
	nominations *nominations
	conditions  *conditions
}

// start returns a new attempt for the pod, which was popped from the queue.
func (l *attempts) start(ps *podState) *attempt {
	p := ps.entry.Pod
	all := &struct { // in one piece, as most attempts need all of it
		attempt
		record  decision.Decision
		cycle   bindingCycle
		effects [2]Effect // the record and the binding
	}{
		attempt: attempt{state: ps, pod: p, profile: ps.request.Profile, request: ps.request},
		record: decision.Decision{UID: p.UID, Pod: p.NamespacedName(), Profile: p.SchedulerName,
			Attempt: ps.entry.Attempts(), Flushed: ps.entry.Flushed()},
	}
	all.attempt.record, all.attempt.binding = &all.record, &all.cycle
	if l.effects == nil {
		l.effects = all.effects[:0]
	}
	return &all.attempt
}

// skip removes a pod that is being deleted from the queue, with a FailedScheduling event.
func (l *attempts) skip(ps *podState) {
	p := ps.entry.Pod
	l.emit(PublishEvent{Pod: p, Warning: true, Reason: ReasonFailedScheduling, Action: "Scheduling",
		Note: explain.Deleting(p)})
	kept := ps.entry.NominatedNode()
	l.dequeue(ps)
	l.nominations.moved(p, kept, "")
}

// requeue ends an attempt without a node. The pod waits for events of the plugins that its
// record names.
func (l *attempts) requeue(a *attempt, n nominating) { l.requeueFor(a, n, a.record.RejectedBy) }

// requeueFor ends an attempt without a node: it returns the pod to the queue, where it waits for
// events of the plugins rejectedBy, changes its nomination as n says, and emits the record, the
// event and the status patch. Of a pod that was deleted meanwhile it emits only the record.
func (l *attempts) requeueFor(a *attempt, n nominating, rejectedBy []string) {
	r, ps := a.record, a.state
	l.emit(AttemptDone{r})
	l.profiles.endAttempt(a.pod)
	if ps.entry == nil {
		return // deleted while it was in flight
	}
	ps.noVictims = a.noVictims
	if a.grouped && a.pod.KubernetesGroup() == "" {
		ps.toldGated = false // its group may become gated again, for another reason
	}
	if a.spared && len(rejectedBy) > 0 {
		rejectedBy = append(slices.Clip(rejectedBy), framework.PreemptionBudgets)
	}
	l.queue.Requeue(l.now, ps.entry, rejectedBy, r.PendingBy)
	l.conditions.track(ps)
	p, patch := ps.entry.Pod, PatchStatus{Pod: ps.entry.Pod}
	if !n.keep {
		kept := ps.entry.NominatedNode()
		l.queue.Nominate(ps.entry, n.node)
		l.nominations.moved(p, kept, n.node)
		patch.Nominated = l.nominations.toWrite(ps, n.node)
	}
	for _, uid := range n.ends {
		if other := l.pods.byUID[uid]; other != nil && other.entry != nil {
			l.nominations.clear(other)
		}
	}
	patch.Condition = conditionToWrite(ps, explain.Condition(r))
	l.emit(PublishEvent{Pod: p, Warning: true, Reason: ReasonFailedScheduling, Action: "Scheduling", Note: explain.Message(r)})
	if patch.Condition != nil || patch.Nominated != nil {
		l.emit(patch)
	}
}

// dequeue removes the pod from the queue, if it is there.
func (l *attempts) dequeue(ps *podState) {
	if ps.entry != nil {
		l.conditions.untrack(ps)
		l.queue.Delete(l.now, ps.entry)
		ps.entry = nil
	}
}

// recordNodes sets the number of feasible nodes in the record, and the list of nodes if
// Options.Explain selects the pod.
func (l *attempts) recordNodes(a *attempt, o *engine.Outcome) {
	a.record.NodesFeasible = o.Feasible
	if l.options.Explain != nil && l.options.Explain(a.pod) {
		a.record.Nodes = o.Nodes()
	}
}

// stepDone calls Options.StepDone with the step that was just done.
func (l *attempts) stepDone(step string) {
	if l.options.StepDone != nil {
		l.options.StepDone(step)
	}
}

// recordRejection sets the reasons why no node was found, and the result Unschedulable, in the
// record.
func (l *attempts) recordRejection(a *attempt, o *engine.Outcome) {
	l.recordNodes(a, o)
	r := a.record
	r.Tallies, r.RejectedBy = o.Tallies(), o.RejectedBy()
	if o.Rejected != nil {
		r.PreFilter = o.Rejected
	}
	r.Result = decision.ResultUnschedulable
}

// fail ends an attempt with the status s and returns the pod to the queue. s is an error, or a
// plugin's rejection after the pod was assumed. A binding cycle is undone first. If that has to
// wait for writes or PreBind plugins (revertWrites), fail returns early, and is called again with
// the status when the reply has come.
func (b *bindingCycles) fail(a *attempt, s *decision.Status) {
	c := a.state.binding
	if c != nil && b.revertWrites(c, s) {
		return
	}
	r := a.record
	if c != nil {
		again := *r
		r, a = &again, &attempt{state: a.state, pod: a.pod, profile: a.profile, record: &again}
		r.Node, r.Nodes = "", nil
		b.forgetAssumed(c)
		b.finish(c)
		b.preemptors.activateReady(c.preemptors)
	}
	r.Result, r.Err = decision.ResultError, s.Err
	r.RejectedBy, r.PendingBy = nil, nil // a failure is no verdict, whatever was found before
	if s.Code.Rejects() && s.Err == nil {
		// As in kube-scheduler: the one node that it was to go to, and why not.
		r.Result, r.NodesTotal, r.NodesFeasible = decision.ResultUnschedulable, 1, 0
		r.Tallies = []decision.Tally{{Blocker: decision.Blocker{Plugin: s.Plugin, Code: s.Code, Reasons: s.Reasons}, Nodes: 1}}
		if s.Code == decision.Pending {
			r.PendingBy = []string{s.Plugin}
		} else {
			r.RejectedBy = []string{s.Plugin}
		}
	} else if s.Code.Rejects() { // ErrNoNodes, or a Rejection
		r.Result = decision.ResultUnschedulable
	} else {
		r.FailedPoint, r.FailedPlugin = s.Point, s.Plugin
	}
	if c != nil && !s.Code.Rejects() {
		b.moveAll(assumptionEnded(c))
	}
	b.attempts.requeue(a, nominating{})
	if c != nil && s.Code.Rejects() {
		gone := assumptionEnded(c)
		gone.Table = b.table
		b.queue.MoveAllToActiveOrBackoff(b.now, gone, func(p *object.Pod) bool { return p.UID != a.pod.UID })
	}
}

// failAfterPanic ends an attempt that panicked, with the error err: it undoes what the attempt did,
// and the pod backs off.
func (d *schedulingCycles) failAfterPanic(a *attempt, err error) {
	d.extenders.finish(a.state)
	if a.state.binding == nil {
		d.table.RemovePod(a.pod.UID)
		d.pods.setAssumed(a.state, false)
	}
	d.bindings.fail(a, &decision.Status{Code: decision.Error, Err: err})
}

// attribute sets the point and plugin that the status is from. If its Code is Error, it also names
// them in the text of its Err. It changes and returns s.
func attribute(s *decision.Status, point, plugin string) *decision.Status {
	s.Plugin, s.Point = plugin, point
	if s.Code == decision.Error {
		err := s.Err
		if err == nil {
			err = fmt.Errorf("%s", s.Reasons)
		}
		s.Err = fmt.Errorf("%s: %w", calling(point, plugin), err)
	}
	return s
}

package machine

import (
	"errors"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
)

// errAwaitsReply is why a pod that came back under its UID, as etcd was restored from a
// backup, is not scheduled yet: replies name the pod, and not the cycle.
var errAwaitsReply = errors.New("the pod was gone, and what was sent for it before that has no answer yet")

// ErrNoNodes is why a pod is not scheduled in a cluster without nodes.
var ErrNoNodes = errors.New(explain.NoNodes)

// attempt is one try to place one pod, from its Pop to the end of its binding
// cycle.
type attempt struct {
	state   *podState
	pod     *object.Pod // as it is scheduled, whatever the API shows since
	profile *profile.Profile
	request *engine.Request
	record  *decision.Decision
	binding *bindingCycle // preallocated
	// noVictims is the state's, once the attempt ends.
	noVictims bool
	// group is the pod in the cycle of its pod group, nil outside of one.
	group *groupMember
}

func (m *Machine) newAttempt(ps *podState) *attempt {
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
	if m.effects == nil {
		m.effects = all.effects[:0]
	}
	return &all.attempt
}

// scheduleOne pops the first pod of the queue and runs its scheduling cycle and, if a
// node was found, starts its binding cycle.
func (m *Machine) scheduleOne() {
	if m.waitsForEvictions() {
		return
	}
	e := m.queue.Pop(m.now)
	if e == nil {
		return
	}
	ps := e.Owner.(*podState)
	if m.options.hasGroup(e.Pod) {
		m.scheduleGroup(ps)
		return
	}
	if e.Pod.Terminating {
		m.skipPod(ps)
		return
	}
	m.overcommits.counting = true
	a := m.newAttempt(ps)
	a.record.NodesTotal = m.table.Live()
	m.lookAheadFrom(e.Pod)
	var c *bindingCycle
	if err := m.guard.run("scheduling cycle", "", func() { c = m.schedulePod(a) }); err != nil {
		m.failAfterPanic(a, err)
		return
	}
	if c != nil && c.phase == reserve {
		m.runPreBind(c)
	}
}

// skipPod removes a pod that is being deleted from the queue, with an event.
func (m *Machine) skipPod(ps *podState) {
	p := ps.entry.Pod
	m.emit(PublishEvent{Pod: p, Warning: true, Reason: ReasonFailedScheduling, Action: "Scheduling",
		Note: explain.Deleting(p)})
	kept := ps.entry.NominatedNode()
	m.dequeue(ps)
	m.nominations.moved(p, kept, "")
}

// schedulePod evaluates every node and assumes the pod on the best. It returns
// nil when the attempt is over, or waits for extenders or a PostFilter plugin.
func (m *Machine) schedulePod(a *attempt) *bindingCycle {
	if s := m.cannotTry(a); s != nil {
		m.fail(a, s)
		return nil
	}
	if extenders := m.extendersOf(a.pod); extenders != nil {
		return m.startExtenderCycle(a, extenders)
	}
	o := m.engine.Decide(a.request, m.nominations)
	m.stepDone(nil, "Computing predicates and prioritizing done")
	if o.Row < 0 && (o.Rejected == nil || o.Rejected.Code.Rejects()) {
		m.recordRejection(a, o)
		n, waits := m.runPostFilter(a, o, 0, nominating{keep: true}, nil)
		m.stepDone(nil, "Running PostFilter plugins done")
		if !waits {
			m.requeue(a, n)
		}
		return nil
	}
	c := m.assumeChosen(a, o)
	m.engine.Reuse(o)
	return c
}

// cannotTry returns why no node is looked at, nil where nodes are.
func (m *Machine) cannotTry(a *attempt) *decision.Status {
	switch {
	case m.table.Live() == 0:
		return &decision.Status{Code: decision.UnschedulableAndUnresolvable, Err: ErrNoNodes}
	case a.state.ended != nil:
		return &decision.Status{Code: decision.Error, Err: errAwaitsReply}
	}
	return m.unlisted.undecidable(m.table, a.profile, a.pod)
}

// assumeChosen assumes the pod on the node that was found, unless scoring failed.
func (m *Machine) assumeChosen(a *attempt, o *engine.Outcome) *bindingCycle {
	m.recordNodes(a, o)
	if o.Rejected != nil {
		m.fail(a, o.Rejected)
		return nil
	}
	a.record.Score, a.record.Ties = o.Score, o.Ties
	return m.assume(a, o.Row)
}

func (m *Machine) recordNodes(a *attempt, o *engine.Outcome) {
	a.record.NodesFeasible = o.Feasible
	if m.options.Explain != nil && m.options.Explain(a.pod) {
		a.record.Nodes = o.Nodes()
	}
}

// stepDone calls Options.StepDone for a step of an attempt, which is part of the cycle of
// a pod group, or of none (nil). It leaves out the steps of trials, of which there may be
// a hundred thousand.
func (m *Machine) stepDone(c *groupCycle, step string) {
	if m.options.StepDone != nil && (c == nil || !c.triesPlacements() && !c.trial) {
		m.options.StepDone(step)
	}
}

// recordRejection writes to the record why no node was found.
func (m *Machine) recordRejection(a *attempt, o *engine.Outcome) {
	m.recordNodes(a, o)
	r := a.record
	r.Tallies, r.RejectedBy = o.Tallies(), o.RejectedBy()
	if o.Rejected != nil {
		r.PreFilter = o.Rejected
	}
	r.Result = decision.ResultUnschedulable
}

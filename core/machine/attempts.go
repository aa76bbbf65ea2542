package machine

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
)

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

// attempts are tries to place pods: how each begins, what its record says of it, and how it
// ends without a node.
type attempts struct {
	*step
	options     *Options
	profiles    profiles
	pods        *pods
	nominations *nominations
	conditions  *conditions
}

// start returns a new attempt for the pod, which is in flight.
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

// skip removes a pod that is being deleted from the queue, with an event.
func (l *attempts) skip(ps *podState) {
	p := ps.entry.Pod
	l.emit(PublishEvent{Pod: p, Warning: true, Reason: ReasonFailedScheduling, Action: "Scheduling",
		Note: explain.Deleting(p)})
	kept := ps.entry.NominatedNode()
	l.dequeue(ps)
	l.nominations.moved(p, kept, "")
}

// requeue ends an attempt without a node: it returns the pod to the queue, updates its
// nomination, and emits the record, the event and the patch.
func (l *attempts) requeue(a *attempt, n nominating) {
	r, ps := a.record, a.state
	l.emit(AttemptDone{r})
	l.profiles.endAttempt(a.pod)
	if ps.entry == nil {
		return // deleted while it was in flight
	}
	ps.noVictims = a.noVictims
	l.queue.Requeue(l.now, ps.entry, r.RejectedBy, r.PendingBy)
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

// dequeue removes the pod from the queue.
func (l *attempts) dequeue(ps *podState) {
	if ps.entry != nil {
		l.conditions.untrack(ps)
		l.queue.Delete(ps.entry)
		ps.entry = nil
	}
}

// recordNodes writes to the record what was found of the nodes.
func (l *attempts) recordNodes(a *attempt, o *engine.Outcome) {
	a.record.NodesFeasible = o.Feasible
	if l.options.Explain != nil && l.options.Explain(a.pod) {
		a.record.Nodes = o.Nodes()
	}
}

// stepDone calls Options.StepDone for a step of an attempt, which is part of the cycle of
// a pod group, or of none (nil). It leaves out the steps of trials, of which there may be
// a hundred thousand.
func (l *attempts) stepDone(c *groupCycle, step string) {
	if l.options.StepDone != nil && (c == nil || !c.triesPlacements() && !c.trial) {
		l.options.StepDone(step)
	}
}

// recordRejection writes to the record why no node was found.
func (l *attempts) recordRejection(a *attempt, o *engine.Outcome) {
	l.recordNodes(a, o)
	r := a.record
	r.Tallies, r.RejectedBy = o.Tallies(), o.RejectedBy()
	if o.Rejected != nil {
		r.PreFilter = o.Rejected
	}
	r.Result = decision.ResultUnschedulable
}

package machine

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/object"
)

// submitGroup carries out the result of the group's cycle: its pods are assumed for
// good or go back to the queue, and the group's condition is written.
func (l *podGroups) submitGroup(c *groupCycle) {
	done := PodGroupDone{Group: c.name, Profile: c.profile.Name, Pods: len(c.members), Victims: c.victims}
	if len(c.victims) > 0 {
		l.evictForGroup(c)
	}
	if c.placement != nil {
		done.Placement = c.placement.Name
	}
	for _, mb := range c.members {
		if l.submitMember(c, mb) {
			done.Scheduled++
		}
	}
	for _, mb := range c.members {
		if b := mb.state.binding; b != nil && b.attempt == mb.attempt && b.phase == waitOnPermit {
			l.bindings.showExpectedNode(b)
		}
	}
	condition := object.GroupCondition{Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable, Message: explain.Status(c.status)}
	switch {
	case c.status == nil:
		done.Result = decision.ResultScheduled
		condition.Status, condition.Reason = v1.ConditionTrue, "Scheduled"
	case c.preempts:
		done.Result = decision.ResultPreempting
	case c.status.Code == decision.Error:
		done.Result, done.Err = decision.ResultError, c.status.Err
		condition.Reason = v1.PodReasonSchedulerError
	default:
		done.Result = decision.ResultUnschedulable
	}
	l.emit(done)
	l.showCondition(c, condition)
}

// submitMember ends the scheduling cycle of one pod of the group, once the group is decided:
// the pod is assumed, fails or is requeued. It returns true if the pod is assumed and goes
// on to its binding.
func (l *podGroups) submitMember(c *groupCycle, mb *groupMember) (scheduled bool) {
	a := mb.attempt
	switch rejected := c.status != nil; {
	case mb.waits: // postFilterReplied goes on
	case mb.failed != nil && (!rejected || c.status.Code != decision.Error || !mb.failed.Code.Rejects()):
		l.bindings.fail(a, mb.failed)
	case rejected && c.status.Code == decision.Error:
		l.bindings.fail(a, c.status)
	case rejected && l.options.GroupPlacements && c.placement == nil:
		l.holdMember(mb, c.status, nominating{}) // it was not tried
	case mb.fits && !rejected:
		return l.commitMember(mb)
	case mb.fits && c.preempts:
		l.holdMember(mb, c.status, nominating{node: l.table.Name(mb.row)})
	case mb.fits || mb.preempts && !c.preempts:
		l.holdMember(mb, &decision.Status{Code: decision.Unschedulable, Err: errGroupUnschedulable, Reasons: mb.permit.Reasons}, nominating{})
	default:
		if mb.preempts {
			l.evictions.preempt(a, mb.plan.plugin, mb.plan.result)
		}
		l.attempts.requeue(a, mb.nomination)
	}
	return false
}

// commitMember assumes the pod on the node that was found and starts its binding cycle. It
// returns false if a plugin rejects the pod or panics.
func (l *podGroups) commitMember(mb *groupMember) bool {
	var b *bindingCycle
	if err := l.guard.run("scheduling cycle", "", func() { b = l.bindings.assume(mb.attempt, mb.row) }); err != nil {
		l.scheduling.failAfterPanic(mb.attempt, err)
		return false
	}
	if b != nil && b.phase == reserve {
		l.bindings.runPreBind(b)
	}
	return b != nil
}

// holdMember requeues a pod that fits, or would after a preemption, because its group
// does not. No plugin rejected it, so it backs off as after an error. why, the group's
// status, goes into the pod's record; n is how the pod's nomination changes.
func (l *podGroups) holdMember(mb *groupMember, why *decision.Status, n nominating) {
	r := mb.record
	if r.Result, r.GroupStatus = decision.ResultUnschedulable, why; mb.fits || mb.preempts {
		r.GroupNode = l.table.Name(mb.row)
	}
	r.RejectedBy, r.PendingBy, r.PostFilter = nil, nil, nil
	r.Score, r.Ties = 0, 0
	l.attempts.requeue(mb.attempt, n)
}

// showCondition emits a patch of the group's condition, unless the API shows it already
// or was asked to. A group that was scheduled once stays so, whatever becomes of later
// pods.
func (l *podGroups) showCondition(c *groupCycle, condition object.GroupCondition) {
	g, _ := l.table.Objects().Shown(object.PodGroups, c.name.Namespace, c.name.Name).(*object.PodGroup)
	if g == nil {
		return
	}
	condition.ObservedGeneration = g.Generation
	asked, told := l.asked[g.UID]
	if condition.Status != v1.ConditionTrue && (g.Scheduled.Status == v1.ConditionTrue || asked.Status == v1.ConditionTrue) {
		return
	}
	if g.Scheduled == condition && (!told || asked == condition) {
		return
	}
	l.asked[g.UID] = condition
	l.emit(PatchGroupStatus{Group: g, Condition: condition})
}

// shown handles a PodGroup that changed from before to now in the API, nil if it does not
// exist: it forgets the condition that was asked for if it is shown or the group is gone.
func (l *podGroups) shown(before, now object.Object) {
	g, _ := now.(*object.PodGroup)
	if old, _ := before.(*object.PodGroup); old != nil && (g == nil || g.UID != old.UID) {
		delete(l.asked, old.UID)
	}
	if g != nil && l.asked[g.UID] == g.Scheduled {
		delete(l.asked, g.UID)
	}
}

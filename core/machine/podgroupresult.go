package machine

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/object"
)

// submitGroup carries out what was found for the group: its pods are assumed for good, or
// go back to the queue. The group's condition says which.
func (m *Machine) submitGroup(c *groupCycle) {
	done := PodGroupDone{Group: c.name, Profile: c.profile.Name, Pods: len(c.members), Victims: c.victims}
	if len(c.victims) > 0 {
		m.evictForGroup(c)
	}
	if c.placement != nil {
		done.Placement = c.placement.Name
	}
	for _, mb := range c.members {
		if m.submitMember(c, mb) {
			done.Scheduled++
		}
	}
	for _, mb := range c.members {
		if b := mb.state.binding; b != nil && b.attempt == mb.attempt && b.phase == waitOnPermit {
			m.bindings.showExpectedNode(b)
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
	m.emit(done)
	m.showGroupCondition(c, condition)
}

// submitMember ends the pod's scheduling cycle. It reports whether the pod goes on to be
// bound.
func (m *Machine) submitMember(c *groupCycle, mb *groupMember) (scheduled bool) {
	a := mb.attempt
	switch rejected := c.status != nil; {
	case mb.waits: // postFilterReplied goes on
	case mb.failed != nil && (!rejected || c.status.Code != decision.Error || !mb.failed.Code.Rejects()):
		m.bindings.fail(a, mb.failed)
	case rejected && c.status.Code == decision.Error:
		m.bindings.fail(a, c.status)
	case rejected && m.options.GroupPlacements && c.placement == nil:
		m.holdMember(mb, c.status, nominating{}) // it was not tried
	case mb.fits && !rejected:
		return m.commitMember(mb)
	case mb.fits && c.preempts:
		m.holdMember(mb, c.status, nominating{node: m.table.Name(mb.row)})
	case mb.fits || mb.preempts && !c.preempts:
		m.holdMember(mb, &decision.Status{Code: decision.Unschedulable, Err: errGroupUnschedulable, Reasons: mb.permit.Reasons}, nominating{})
	default:
		if mb.preempts {
			m.evictions.preempt(a, mb.plan.plugin, mb.plan.result)
		}
		m.attempts.requeue(a, mb.nomination)
	}
	return false
}

// commitMember assumes the pod where it was found to fit, and begins its binding cycle.
func (m *Machine) commitMember(mb *groupMember) bool {
	var b *bindingCycle
	if err := m.guard.run("scheduling cycle", "", func() { b = m.bindings.assume(mb.attempt, mb.row) }); err != nil {
		m.scheduling.failAfterPanic(mb.attempt, err)
		return false
	}
	if b != nil && b.phase == reserve {
		m.bindings.runPreBind(b)
	}
	return b != nil
}

// holdMember sends a pod back that fits, or would after a preemption, because its group
// does not. No plugin rejected it, so it backs off as after an error.
func (m *Machine) holdMember(mb *groupMember, why *decision.Status, n nominating) {
	r := mb.record
	if r.Result, r.GroupStatus = decision.ResultUnschedulable, why; mb.fits || mb.preempts {
		r.GroupNode = m.table.Name(mb.row)
	}
	r.RejectedBy, r.PendingBy, r.PostFilter = nil, nil, nil
	r.Score, r.Ties = 0, 0
	m.attempts.requeue(mb.attempt, n)
}

// showGroupCondition emits a patch of the group's condition, unless the API shows it
// already or was asked to. A group that was scheduled once stays so, whatever becomes of
// later pods.
func (m *Machine) showGroupCondition(c *groupCycle, condition object.GroupCondition) {
	g, _ := m.table.ShownObject(object.PodGroups, c.name.Namespace, c.name.Name).(*object.PodGroup)
	if g == nil {
		return
	}
	condition.ObservedGeneration = g.Generation
	asked, told := m.groupConditions[g.UID]
	if condition.Status != v1.ConditionTrue && (g.Scheduled.Status == v1.ConditionTrue || asked.Status == v1.ConditionTrue) {
		return
	}
	if g.Scheduled == condition && (!told || asked == condition) {
		return
	}
	m.groupConditions[g.UID] = condition
	m.emit(PatchGroupStatus{Group: g, Condition: condition})
}

// groupShown handles a PodGroup that the API shows, nil if it is deleted: it forgets
// conditions that are shown, or whose group is gone.
func (m *Machine) groupShown(before, now object.Object) {
	g, _ := now.(*object.PodGroup)
	if old, _ := before.(*object.PodGroup); old != nil && (g == nil || g.UID != old.UID) {
		delete(m.groupConditions, old.UID)
	}
	if g != nil && m.groupConditions[g.UID] == g.Scheduled {
		delete(m.groupConditions, g.UID)
	}
}

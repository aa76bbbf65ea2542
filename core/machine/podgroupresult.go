package machine

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// placedCondition is the condition of a group that is placed.
var placedCondition = object.GroupCondition{Status: v1.ConditionTrue, Reason: "Scheduled"}

// submitGroup carries out the result of the group's cycle: victims are evicted, the group's pods
// are assumed for good or go back to the queue, and PodGroupDone and a patch of the group's
// condition are emitted.
func (l *podGroups) submitGroup(c *groupCycle) {
	done := PodGroupDone{Group: c.name, Profile: c.profile.Name, Pods: len(c.members), Victims: c.victims, Order: c.order}
	if len(c.victims) > 0 {
		l.evictForGroup(c)
	}
	if c.placement != nil {
		done.Placement = c.placement.Name
	}
	of, _ := levelsOf(l.options, c.profile, c.group)
	wait := l.newGroupWait(c)
	for _, mb := range c.members {
		if l.submitMember(c, mb, wait) {
			c.scheduled++
		}
	}
	done.Scheduled = c.scheduled
	for _, mb := range c.members {
		if b := mb.state.binding; b != nil && b.attempt == mb.attempt && b.phase == waitOnPermit {
			l.bindings.showExpectedNode(b)
		}
	}
	condition := object.GroupCondition{Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable, Message: explain.Status(c.status)}
	switch {
	case c.status == nil:
		done.Result = decision.ResultScheduled
		if l.table.Groups().Named(c.name).Scheduled() == c.scheduled {
			done.Waited = l.now.Sub(c.firstActive)
		}
		condition = placedCondition
		condition.Message = of.placedIn(c.placement)
	case c.status.Code == decision.Error:
		done.Result, done.Err = decision.ResultError, c.status.Err
		condition.Reason, condition.Message = v1.PodReasonSchedulerError, c.status.Err.Error()
	case c.preempts:
		done.Result = decision.ResultPreempting
	default:
		done.Result = decision.ResultUnschedulable
	}
	l.emit(done)
	l.showCondition(c.name, condition)
}

// lead makes up for what an earlier leader may have left undone: it emits the condition of each
// gang of which MinCount pods are bound and whose condition does not say so, and ends the
// nominations of gated groups. It is called once, when this process begins to lead.
func (l *podGroups) lead() {
	for _, name := range l.table.Groups().Names() {
		l.clearGated(name)
	}
	for _, o := range l.table.Objects().List(object.PodGroups) {
		g := o.(*object.PodGroup)
		if g.Gang && g.Scheduled.Status != v1.ConditionTrue && l.table.Groups().Named(g.GroupKey()).Bound() >= g.MinCount {
			l.showCondition(g.GroupKey(), placedCondition)
		}
	}
}

// failGroup ends a cycle that cannot begin, because of err: all its pods back off, and the group's
// condition says why.
func (l *podGroups) failGroup(c *groupCycle, err error) {
	for _, mb := range c.members {
		l.bindings.fail(mb.attempt, &decision.Status{Code: decision.Error, Err: err})
	}
	l.showCondition(c.name, object.GroupCondition{Status: v1.ConditionFalse, Reason: v1.PodReasonSchedulerError, Message: err.Error()})
	l.queue.EndGroup(l.now, c.name, queue.GroupFailed)
}

// submitMember ends the scheduling cycle of one pod of the group, once the group is decided: the
// pod is assumed, fails or is requeued. It returns true if the pod is assumed and goes on to its
// binding. wait says how the pod waits if it is requeued.
func (l *podGroups) submitMember(c *groupCycle, mb *groupMember, wait *groupWait) (scheduled bool) {
	a := mb.attempt
	switch {
	case c.status != nil && c.status.Code == decision.Error:
		if mb.failed != nil && mb.failed.Code == decision.Error {
			l.bindings.fail(a, mb.failed)
		} else {
			l.bindings.fail(a, &decision.Status{Code: decision.Error, Err: c.status.Err})
		}
	case mb.failed != nil:
		l.bindings.fail(a, mb.failed)
	case mb.fits && c.status == nil:
		return l.commitMember(mb)
	case mb.tried && !mb.fits:
		wakes := wait.rejected(mb)
		l.deallocate(c, mb)
		l.attempts.requeueFor(a, c.nominating(mb), wakes)
	default:
		l.holdMember(c, mb, wait)
	}
	return false
}

// nominating returns how the pod's nomination changes as the pod is requeued. It stays, unless a
// preemption for the group decided on the pod: then it is the node on which the pod fits, or none.
func (c *groupCycle) nominating(mb *groupMember) nominating {
	node, named := c.nominated[mb.pod.UID]
	return nominating{keep: !named, node: node}
}

// endNominations ends the nominations of pods of the group that were not placed. It leaves them if
// the group preempts, if victims of an earlier preemption for it are still leaving, or if its cycle
// ended in an error. Else other pods have the room that the group preempted for, and the group must
// not keep more of it. Call it after the group is requeued, so that the ended nominations do not
// wake it.
func (l *podGroups) endNominations(c *groupCycle) {
	if c.preempts || c.status != nil && c.status.Code == decision.Error {
		return
	}
	for _, mb := range c.members {
		if ps := mb.state; ps.entry != nil && mb.kept != "" && !(mb.fits && c.status == nil) && ps.entry.NominatedNode() != "" {
			if l.leavingFor(c) {
				return
			}
			l.nominations.clear(ps)
		}
	}
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

// holdMember requeues a pod that fits, or was not tried, because its group does not fit. The
// group's status goes into its record.
func (l *podGroups) holdMember(c *groupCycle, mb *groupMember, wait *groupWait) {
	r := mb.record
	r.Result = decision.ResultUnschedulable
	switch {
	case mb.fits && !c.preempts:
		r.GroupStatus = unschedulableGroup(explain.Status(c.status))
	case mb.fits:
		r.GroupStatus = c.status
	default:
		r.GroupStatus = c.untried
	}
	r.RejectedBy, r.PendingBy, r.PostFilter = nil, nil, nil
	if mb.fits && mb.row >= 0 {
		r.GroupNode = l.table.Name(mb.row)
	}
	r.Score, r.Ties, r.NodesFeasible = 0, 0, 0 // beside the pods before it, which are placed nowhere
	wakes := wait.held(mb)
	l.deallocate(c, mb)
	l.attempts.requeueFor(mb.attempt, c.nominating(mb), wakes)
}

// constrained reports whether the pods of the group must be placed in one topology domain.
func (l *podGroups) constrained(c *groupCycle) bool {
	if of, _ := levelsOf(l.options, c.profile, c.group); of.levels != nil {
		return of.widest != wholeCluster
	}
	return l.options.GroupPlacements && c.group.TopologyKey != ""
}

// askDeallocate asks plugins which writes, such as deallocations of claims, may help the pod, which
// was just tried with outcome o. The first plugin with writes counts; they are left in mb. It asks
// none in a trial, among several placements, or if the group must stay in one topology domain.
func (l *podGroups) askDeallocate(c *groupCycle, mb *groupMember, o *engine.Outcome) {
	if c.trial || c.placements > 1 || l.constrained(c) || len(mb.pod.Claims) == 0 && mb.pod.Demand.Requests.Scalars == nil {
		return
	}
	for _, pl := range c.profile.PodGroupPostFilter {
		if pl.PodGroup.Deallocate == nil {
			continue
		}
		if mb.writes = pl.PodGroup.Deallocate(l.scheduling.postFilterCall(mb.attempt, o)); len(mb.writes) > 0 {
			mb.writer = pl.Name
			return
		}
	}
}

// deallocate emits the writes that askDeallocate left in mb, if the group was not placed. The
// changed objects wake the group.
func (l *podGroups) deallocate(c *groupCycle, mb *groupMember) {
	if len(mb.writes) == 0 || c.status == nil {
		return
	}
	l.emit(Write{Pod: mb.pod, Writes: mb.writes, Call: l.extenders.upcomingCall()})
	l.extenders.nextCall()
}

// showCondition emits a patch of the group's condition, unless the API shows it already or was
// asked to. A condition that is or was to be True is not replaced by another status, whatever
// becomes of later pods.
func (l *podGroups) showCondition(name types.NamespacedName, condition object.GroupCondition) {
	g, _ := l.table.Objects().Shown(object.PodGroups, name.Namespace, name.Name).(*object.PodGroup)
	if g == nil {
		return
	}
	condition.ObservedGeneration = g.Generation
	asked, patched := l.asked[g.UID]
	if condition.Status != v1.ConditionTrue && (g.Scheduled.Status == v1.ConditionTrue || asked.Status == v1.ConditionTrue) {
		return
	}
	if g.Scheduled == condition && (!patched || asked == condition) {
		return
	}
	l.asked[g.UID] = condition
	l.emit(PatchGroupStatus{Group: g, Condition: condition})
}

// shown handles a PodGroup that changed from before to now in the API, nil if it does not exist: it
// forgets the condition that was asked for if it is shown or the group is gone. The pods of a group
// that was created, deleted, replaced or changed in what the queue reads run PreEnqueue again;
// those of one that is gone are nominated to no node any more.
func (l *podGroups) shown(before, now object.Object) {
	g, _ := now.(*object.PodGroup)
	old, _ := before.(*object.PodGroup)
	if old != nil && (g == nil || g.UID != old.UID) {
		delete(l.asked, old.UID)
		l.clearNominations(old.GroupKey())
	}
	if g != nil && old != nil && g.UID == old.UID && g.MinCount > old.MinCount {
		l.table.Groups().Named(g.GroupKey()).MinimumChanged(old)
	}
	switch {
	case g == nil && old != nil:
		l.recheckGates(old)
	case g != nil && (old == nil || old.UID != g.UID || old.Priority != g.Priority || old.Required != g.Required || old.Preferred != g.Preferred || g.Source != "" && (old.MinCount != g.MinCount || old.Fault != g.Fault || !slices.Equal(old.Needs(), g.Needs()))):
		l.recheckGates(g)
	case g != nil:
		l.queue.UpdateHalfBound(g.GroupKey()) // its minimum may have changed
	}
	if g != nil && l.asked[g.UID] == g.Scheduled {
		delete(l.asked, g.UID)
	}
}

// recheckGates makes the pods of the group run PreEnqueue again. If the group is not Kubernetes'
// own, its pods report anew why they are gated.
func (l *podGroups) recheckGates(g *object.PodGroup) {
	if g.Source != "" {
		for uid := range l.table.Groups().Named(g.GroupKey()).Unscheduled() {
			if ps := l.pods.byUID[uid]; ps != nil {
				ps.toldGated = false
			}
		}
	}
	l.queue.PodGroupChanged(l.now, g.GroupKey())
	l.clearGated(g.GroupKey())
}

// clearGated ends the nominations of the group's pods if the group is gated, for it is tried
// again only once its gates open.
func (l *podGroups) clearGated(name types.NamespacedName) {
	for uid := range l.table.Groups().Named(name).Unscheduled() {
		if l.pods.entry(uid).Place() == queue.Gated {
			l.clearNominations(name)
			return
		}
	}
}

// placedGone handles the deletion of the placed pod p. If waiting pods of its group are nominated,
// the group runs PreEnqueue again: it may have too few pods now. If it is gated then, its
// nominations end, so that it keeps no room from others.
func (l *podGroups) placedGone(p *object.Pod) {
	for uid := range l.table.Groups().Of(p).Unscheduled() {
		if l.pods.entry(uid).NominatedNode() != "" {
			l.queue.PodGroupChanged(l.now, p.GroupKey())
			l.clearGated(p.GroupKey())
			return
		}
	}
}

// clearNominations ends the nominations of the waiting pods of the group with this name. It does
// nothing before lead: only the leader may write that they end.
func (l *podGroups) clearNominations(name types.NamespacedName) {
	if !l.leads {
		return
	}
	for _, uid := range slices.Collect(l.table.Groups().Named(name).Unscheduled()) {
		if ps := l.pods.byUID[uid]; ps != nil && ps.entry.NominatedNode() != "" {
			l.nominations.clear(ps)
		}
	}
}

package machine

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/table"
)

// podSet handles a pod that the API shows.
func (m *Machine) podSet(p *object.Pod) {
	if other := m.pods.byUID[p.UID]; other != nil && other.pod.NamespacedName() != p.NamespacedName() {
		m.endPod(other) // no API server shows one pod under two names
	}
	ps := m.pods.byName[p.NamespacedName()]
	if ps != nil && ps.pod.UID != p.UID {
		m.endPod(ps)
		ps = nil
	}
	switch ours := m.profiles[p.SchedulerName] != nil; {
	case p.Terminal:
		m.podGone(PodGone{UID: p.UID, Namespace: p.Namespace, Name: p.Name})
		return
	case ps != nil && ps.goneByRead != nil:
		m.reads.shownAfterGone(ps)
		return
	case p.NodeName == "" && !ours:
		if ps != nil && m.pods.placed(ps) {
			m.reads.recheck(ps)
		}
		return
	case ps == nil:
		ps = m.pods.state(p)
	case ps.pod.PodGroup() != p.PodGroup():
		m.table.Groups().Leave(ps.pod)
		m.table.Groups().Join(p)
	}
	if p.NodeName != "" {
		m.podAssigned(ps, p)
	} else {
		m.podPending(ps, p)
	}
}

// podPending handles a pod without a node that names one of the machine's profiles.
func (m *Machine) podPending(ps *podState, p *object.Pod) {
	if pl := m.table.Pod(p.UID); pl != nil && pl.Pod.NodeName != "" {
		m.reads.recheck(ps)
		return
	}
	if ps.request == nil || ps.request.Pod != p {
		ps.request = engine.For(m.profiles[p.SchedulerName], p)
		// A plugin that panics here will do so again when the pod's turn comes.
		_ = m.guard.run("classifying", "", func() { m.engine.Classify(ps.request) })
	}
	ps.pod = p
	if ps.nominating != nil && *ps.nominating == p.NominatedNode {
		ps.nominating = nil
	}
	if ps.condition != nil && *ps.condition == p.Scheduled {
		ps.condition = nil
	}
	if c := ps.binding; c != nil && p.Terminating && c.phase == waitOnPermit {
		m.bindings.fail(c.attempt, m.bindings.permitRejection(c, "", "pod is being deleted"))
	}
	if ps.assumed && ps.binding == nil {
		return // bound by us; the API will show it
	}
	if ps.entry == nil {
		m.recordChange(framework.UnscheduledPod, framework.Add)
		ps.entry = m.queue.Add(m.now, p)
		ps.entry.Owner = ps
		if m.options.GangScheduling {
			m.moveAll(&framework.Event{Resource: framework.UnscheduledPod, ActionType: framework.Add, NewPod: p})
		}
		return
	}
	m.recordChange(framework.UnscheduledPod, framework.UpdateOther)
	kept := ps.entry.NominatedNode()
	m.queue.Update(m.now, ps.entry, p)
	m.nominations.moved(p, kept, ps.entry.NominatedNode())
}

// runPreEnqueue calls the PreEnqueue plugins for the pod. It returns the first refusal,
// for which it also emits a record the first time.
func (m *Machine) runPreEnqueue(p *object.Pod) *decision.Status {
	profile := m.profiles[p.SchedulerName]
	for _, pl := range profile.PreEnqueue {
		if m.unlisted.hides(pl) != nil {
			continue // the attempt will say why it fails
		}
		var s *decision.Status
		if err := m.guard.run("PreEnqueue", pl.Name, func() { s = pl.PreEnqueue(m.table, p) }); err != nil {
			s = &decision.Status{Code: decision.Error, Err: err, Reasons: []string{err.Error()}}
		}
		if s == nil || s.Code == decision.Success {
			continue
		}
		s.Plugin = pl.Name
		if ps := m.pods.byUID[p.UID]; !ps.toldGated {
			ps.toldGated = true
			m.emit(AttemptDone{&decision.Decision{
				UID: p.UID, Pod: p.NamespacedName(), Profile: profile.Name, Result: decision.ResultGated, PreEnqueueStatus: s,
				NodesTotal: m.table.Live(), RejectedBy: []string{pl.Name},
			}})
		}
		return s
	}
	return nil
}

// podAssigned handles a pod that the API shows bound, by whomever. This ends an
// assumption.
func (m *Machine) podAssigned(ps *podState, p *object.Pod) {
	old, c, kept := m.table.Pod(p.UID), ps.binding, ps.entry.NominatedNode()
	m.changed.Bound = ps.pod.NodeName == ""
	if kept != "" {
		m.queue.Nominate(ps.entry, "")
	}
	ps.pod, ps.request, ps.toldGated, ps.nominating, ps.condition, ps.preemption = p, nil, false, nil, nil, nil
	m.pods.setAssumed(ps, false)
	ps.preemptionCount = preemptionCount{}
	if ps.unconfirmed != nil {
		ps.unconfirmed.confirmed = true
	}
	if c != nil && c.node != p.NodeName {
		// Another writer bound it elsewhere: the API proves the assumption false.
		m.bindings.forgetAssumed(c)
		m.bindings.finish(c)
		m.moveAll(assumptionEnded(c))
		c, old = nil, nil
	}
	if c == nil {
		m.extenders.finish(ps)
		m.attempts.dequeue(ps)
	}
	if old != nil && m.table.Name(old.Row) != p.NodeName {
		m.takeOff(old)
		old = nil
	}
	var was *object.Pod
	if old != nil {
		was = old.Pod
	}
	m.table.AddPod(p, p.NodeName)
	m.nominations.moved(p, kept, p.NodeName)
	if was == nil || was.NodeName == "" {
		m.overcommits.check(p.NodeName, p)
		m.moveAll(&framework.Event{Resource: framework.AssignedPod, ActionType: framework.Add, NewPod: p})
	}
	if was != nil {
		m.assignedPodChanged(was, p)
	}
	if c != nil && c.phase != bindSent && c.phase != writesSent && c.phase != preBindCalled { // the replies to these end the cycle
		m.bindings.podBound(c)
	}
}

// assignedPodChanged sends the queue an event about the update of a placed pod. One that
// was assumed until now may be bound with other labels, or smaller requests, than it was
// assumed with.
func (m *Machine) assignedPodChanged(old, now *object.Pod) {
	if old.Terminating && !now.Terminating { // etcd was restored: who waited for it to go may preempt anew
		m.moveAll(anythingChanged)
	}
	if a := queue.Changes(old, now); old.NodeName != "" || a != framework.UpdateOther {
		m.moveAll(&framework.Event{Resource: framework.AssignedPod, ActionType: a, OldPod: boundTo(old, now.NodeName), NewPod: now})
	}
}

func (m *Machine) podGone(e PodGone) {
	ps := m.pods.byUID[e.UID]
	if e.UID == "" {
		ps = m.pods.byName[types.NamespacedName{Namespace: e.Namespace, Name: e.Name}]
	}
	if ps != nil {
		m.endPod(ps)
	}
}

// endPod ends everything under way for a pod that is deleted.
func (m *Machine) endPod(ps *podState) {
	if name := ps.pod.NamespacedName(); m.pods.byName[name] == ps {
		delete(m.pods.byName, name)
	}
	m.pods.setAssumed(ps, false)
	ps.unconfirmed, ps.goneByRead, ps.toldGated, ps.nominating, ps.condition, ps.preemption = nil, nil, false, nil, nil, nil
	m.evictions.gone(ps)
	m.extenders.finish(ps)
	if ps.entry != nil {
		p, kept := ps.entry.Pod, ps.entry.NominatedNode()
		m.attempts.dequeue(ps)
		m.recordChange(framework.UnscheduledPod, framework.Delete)
		m.nominations.moved(p, kept, "")
	}
	if c := ps.binding; c != nil {
		m.bindings.forgetAssumed(c)
		if c.phase == bindSent {
			m.bindings.moveTo(endedAwaitsBind, c)
			ps.ended = c
		}
		m.bindings.finish(c)
		m.moveAll(assumptionEnded(c))
	}
	if pl := m.table.Pod(ps.pod.UID); pl != nil {
		m.takeOff(pl)
	}
	m.table.Groups().Leave(ps.pod)
	m.pods.forget(ps)
}

// takeOff removes a placed pod from its node and sends the queue an event about its
// deletion there.
func (m *Machine) takeOff(pl *table.Placed) {
	gone := boundTo(pl.Pod, m.table.Name(pl.Row))
	m.table.RemovePod(gone.UID)
	m.moveAll(&framework.Event{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: gone})
}

// podDecodeFailed handles a pod that cannot be decoded. A waiting pod leaves the queue,
// with a record and an event that say why. A placed pod is read.
func (m *Machine) podDecodeFailed(e PodDecodeFailed) {
	if ps := m.pods.byUID[e.UID]; ps != nil && m.pods.placed(ps) {
		m.reads.recheck(ps)
		return
	}
	m.podGone(PodGone{UID: e.UID, Namespace: e.Namespace, Name: e.Name})
	if m.profiles[e.SchedulerName] == nil {
		return
	}
	p := &object.Pod{UID: e.UID, Namespace: e.Namespace, Name: e.Name, SchedulerName: e.SchedulerName}
	r := &decision.Decision{UID: p.UID, Pod: p.NamespacedName(), Profile: e.SchedulerName, Result: decision.ResultError,
		NodesTotal: m.table.Live(), Err: fmt.Errorf("the pod cannot be decoded: %w", e.Why)}
	m.emit(AttemptDone{r})
	m.emit(PublishEvent{Pod: p, Warning: true, Reason: ReasonFailedScheduling, Action: "Scheduling", Note: explain.Message(r)})
}

// boundTo returns the pod as it would look bound to the node.
func boundTo(p *object.Pod, node string) *object.Pod {
	if p.NodeName == node {
		return p
	}
	bound := *p
	bound.NodeName = node
	return &bound
}

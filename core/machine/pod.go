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

// podWatch follows what the API shows of pods, by the watch and by reads: it begins and ends
// everything that is under way for them.
type podWatch struct {
	*step
	options     *Options
	profiles    profiles
	engine      *engine.Engine
	guard       *guard
	pods        *pods
	nominations *nominations
	reads       *reads
	overcommits *overcommits
	attempts    *attempts
	bindings    *bindingCycles
	evictions   *evictions
	extenders   *extenderCycles
	groups      *podGroups
	undone      int // bindings
}

// podSet handles a pod that the API shows.
func (w *podWatch) podSet(p *object.Pod) {
	if other := w.pods.byUID[p.UID]; other != nil && other.pod.NamespacedName() != p.NamespacedName() {
		w.endPod(other) // no API server shows one pod under two names
	}
	ps := w.pods.byName[p.NamespacedName()]
	if ps != nil && ps.pod.UID != p.UID {
		w.endPod(ps)
		ps = nil
	}
	switch ours := w.profiles[p.SchedulerName] != nil; {
	case p.Terminal:
		w.podGone(PodGone{UID: p.UID, Namespace: p.Namespace, Name: p.Name})
		return
	case ps != nil && ps.goneByRead != nil:
		w.reads.shownAfterGone(ps)
		return
	case p.NodeName == "" && !ours:
		if ps != nil && w.pods.placed(ps) {
			w.reads.recheck(ps)
		}
		return
	case ps == nil:
		ps = w.pods.state(p)
	case ps.pod.PodGroup() != p.PodGroup():
		w.table.Groups().Leave(ps.pod)
		w.table.Groups().Join(p)
	}
	if p.NodeName != "" {
		w.podAssigned(ps, p)
	} else {
		w.podPending(ps, p)
	}
}

// podPending handles a pod without a node that names one of the machine's profiles.
func (w *podWatch) podPending(ps *podState, p *object.Pod) {
	if pl := w.table.Pod(p.UID); pl != nil && pl.Pod.NodeName != "" {
		w.reads.recheck(ps)
		return
	}
	if ps.request == nil || ps.request.Pod != p {
		ps.request = engine.For(w.profiles[p.SchedulerName], p)
		// A plugin that panics here will do so again when the pod's turn comes.
		_ = w.guard.run("classifying", "", func() { w.engine.Classify(ps.request) })
	}
	ps.pod = p
	if ps.nominating != nil && *ps.nominating == p.NominatedNode {
		ps.nominating = nil
	}
	if ps.condition != nil && *ps.condition == p.Scheduled {
		ps.condition = nil
	}
	if c := ps.binding; c != nil && p.Terminating && c.phase == waitOnPermit {
		w.bindings.fail(c.attempt, w.bindings.permitRejection(c, "", "pod is being deleted"))
	}
	if ps.assumed && ps.binding == nil {
		return // bound by us; the API will show it
	}
	if ps.entry == nil {
		w.recordChange(framework.UnscheduledPod, framework.Add)
		ps.entry = w.queue.Add(w.now, p)
		ps.entry.Owner = ps
		if w.options.GangScheduling {
			w.moveAll(&framework.Event{Resource: framework.UnscheduledPod, ActionType: framework.Add, NewPod: p})
		}
		return
	}
	w.recordChange(framework.UnscheduledPod, framework.UpdateOther)
	kept := ps.entry.NominatedNode()
	w.queue.Update(w.now, ps.entry, p)
	w.nominations.moved(p, kept, ps.entry.NominatedNode())
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
func (w *podWatch) podAssigned(ps *podState, p *object.Pod) {
	old, c, kept := w.table.Pod(p.UID), ps.binding, ps.entry.NominatedNode()
	w.changed.Bound = ps.pod.NodeName == ""
	if kept != "" {
		w.queue.Nominate(ps.entry, "")
	}
	ps.pod, ps.request, ps.toldGated, ps.nominating, ps.condition, ps.preemption = p, nil, false, nil, nil, nil
	w.pods.setAssumed(ps, false)
	ps.preemptionCount = preemptionCount{}
	if ps.unconfirmed != nil {
		ps.unconfirmed.confirmed = true
	}
	if c != nil && c.node != p.NodeName {
		// Another writer bound it elsewhere: the API proves the assumption false.
		w.bindings.forgetAssumed(c)
		w.bindings.finish(c)
		w.moveAll(assumptionEnded(c))
		c, old = nil, nil
	}
	if c == nil {
		w.extenders.finish(ps)
		w.attempts.dequeue(ps)
	}
	if old != nil && w.table.Name(old.Row) != p.NodeName {
		w.takeOff(old)
		old = nil
	}
	var was *object.Pod
	if old != nil {
		was = old.Pod
	}
	w.table.AddPod(p, p.NodeName)
	w.nominations.moved(p, kept, p.NodeName)
	if was == nil || was.NodeName == "" {
		w.overcommits.check(p.NodeName, p)
		w.moveAll(&framework.Event{Resource: framework.AssignedPod, ActionType: framework.Add, NewPod: p})
	}
	if was != nil {
		w.assignedPodChanged(was, p)
	}
	if c != nil && c.phase != bindSent && c.phase != writesSent && c.phase != preBindCalled { // the replies to these end the cycle
		w.bindings.podBound(c)
	}
}

// assignedPodChanged sends the queue an event about the update of a placed pod. One that
// was assumed until now may be bound with other labels, or smaller requests, than it was
// assumed with.
func (w *podWatch) assignedPodChanged(old, now *object.Pod) {
	if old.Terminating && !now.Terminating { // etcd was restored: who waited for it to go may preempt anew
		w.moveAll(anythingChanged)
	}
	if a := queue.Changes(old, now); old.NodeName != "" || a != framework.UpdateOther {
		w.moveAll(&framework.Event{Resource: framework.AssignedPod, ActionType: a, OldPod: boundTo(old, now.NodeName), NewPod: now})
	}
}

func (w *podWatch) podGone(e PodGone) {
	ps := w.pods.byUID[e.UID]
	if e.UID == "" {
		ps = w.pods.byName[types.NamespacedName{Namespace: e.Namespace, Name: e.Name}]
	}
	if ps != nil {
		w.endPod(ps)
	}
}

// endPod ends everything under way for a pod that is deleted.
func (w *podWatch) endPod(ps *podState) {
	if name := ps.pod.NamespacedName(); w.pods.byName[name] == ps {
		delete(w.pods.byName, name)
	}
	w.pods.setAssumed(ps, false)
	ps.unconfirmed, ps.goneByRead, ps.toldGated, ps.nominating, ps.condition, ps.preemption = nil, nil, false, nil, nil, nil
	w.evictions.gone(ps)
	w.extenders.finish(ps)
	if ps.entry != nil {
		p, kept := ps.entry.Pod, ps.entry.NominatedNode()
		w.attempts.dequeue(ps)
		w.recordChange(framework.UnscheduledPod, framework.Delete)
		w.nominations.moved(p, kept, "")
	}
	if c := ps.binding; c != nil {
		w.bindings.forgetAssumed(c)
		if c.phase == bindSent {
			w.bindings.moveTo(endedAwaitsBind, c)
			ps.ended = c
		}
		w.bindings.finish(c)
		w.moveAll(assumptionEnded(c))
	}
	if pl := w.table.Pod(ps.pod.UID); pl != nil {
		w.takeOff(pl)
	}
	w.table.Groups().Leave(ps.pod)
	w.pods.forget(ps)
}

// takeOff removes a placed pod from its node and sends the queue an event about its
// deletion there.
func (w *podWatch) takeOff(pl *table.Placed) {
	gone := boundTo(pl.Pod, w.table.Name(pl.Row))
	w.table.RemovePod(gone.UID)
	w.moveAll(&framework.Event{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: gone})
}

// podDecodeFailed handles a pod that cannot be decoded. A waiting pod leaves the queue,
// with a record and an event that say why. A placed pod is read.
func (w *podWatch) podDecodeFailed(e PodDecodeFailed) {
	if ps := w.pods.byUID[e.UID]; ps != nil && w.pods.placed(ps) {
		w.reads.recheck(ps)
		return
	}
	w.podGone(PodGone{UID: e.UID, Namespace: e.Namespace, Name: e.Name})
	if w.profiles[e.SchedulerName] == nil {
		return
	}
	p := &object.Pod{UID: e.UID, Namespace: e.Namespace, Name: e.Name, SchedulerName: e.SchedulerName}
	r := &decision.Decision{UID: p.UID, Pod: p.NamespacedName(), Profile: e.SchedulerName, Result: decision.ResultError,
		NodesTotal: w.table.Live(), Err: fmt.Errorf("the pod cannot be decoded: %w", e.Why)}
	w.emit(AttemptDone{r})
	w.emit(PublishEvent{Pod: p, Warning: true, Reason: ReasonFailedScheduling, Action: "Scheduling", Note: explain.Message(r)})
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

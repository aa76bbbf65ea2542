package machine

import (
	"container/list"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/table"
)

// podWatch handles pods that the API shows or that are gone, by the watch and by reads. It puts
// pending pods in the queue and bound pods on their nodes. It ends the binding cycles, evictions
// and waits for extenders of pods that no longer need them.
type podWatch struct {
	*step
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
	statuses    *groupStatuses
	undone      int // bindings that were undone by a restore of etcd
}

// podSet handles a pod that the API shows, of any scheduler and in any state. A terminal pod counts
// as deleted. A pod that was bound and is shown without a node is read from the API again. A
// pending pod of another scheduler is ignored.
func (w *podWatch) podSet(p *object.Pod) {
	p = w.groups.member(p)
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
	case p.NodeName == "" && w.wasBound(p.UID):
		w.reads.recheck(ps)
		return
	case p.NodeName == "" && !ours:
		if ps != nil && w.pods.placed(ps) {
			w.reads.recheck(ps)
		}
		return
	case ps == nil:
		ps = w.pods.state(p)
		w.statuses.markChanged(p.GroupKey())
	default:
		w.groups.rejoinAs(ps.pod, p)
	}
	if p.NodeName != "" {
		w.podAssigned(ps, p)
	} else {
		w.podPending(ps, p)
	}
}

// wasBound reports whether the API has shown the pod bound.
func (w *podWatch) wasBound(uid types.UID) bool {
	pl := w.table.Pod(uid)
	return pl != nil && pl.Pod.NodeName != ""
}

// podPending queues a pod without a node that names one of the machine's profiles, or updates its
// entry in the queue. An assumed pod that is bound by us already is not queued.
func (w *podWatch) podPending(ps *podState, p *object.Pod) {
	if ps.request == nil || ps.request.Pod != p {
		ps.request = engine.For(w.profiles[p.SchedulerName], p)
		// A plugin that panics here will do so again when the pod's turn comes.
		_ = w.guard.run("classifying", "", func() { w.engine.Classify(ps.request) })
	}
	lost := ps.pod.Scheduled.Status != "" && p.Scheduled.Status == ""
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
		if w.table.Groups() != nil {
			w.moveAll(&framework.Event{Resource: framework.UnscheduledPod, ActionType: framework.Add, NewPod: p})
		}
		return
	}
	w.recordChange(framework.UnscheduledPod, framework.UpdateOther)
	kept := ps.entry.NominatedNode()
	w.queue.Update(w.now, ps.entry, p)
	w.nominations.moved(p, kept, ps.entry.NominatedNode())
	if lost {
		w.stateAgain(p)
	}
}

// runPreEnqueue calls the PreEnqueue plugins for the pod and returns the first status that gates
// it; nil if none does. A pod whose PodGroup does not exist is gated, too. It reports the pod
// gated. Plugins that need a kind that cannot be listed are not called.
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
		m.reportGated(profile, p, s)
		return s
	}
	if m.groups.has(p) && m.unlisted.group(p) == nil && table.PodGroup(m.table, p.GroupKey()) == nil {
		s := &decision.Status{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{fmt.Sprintf("waiting for pod group %q to be created", p.PodGroup())}}
		m.reportGated(profile, p, s)
		return s
	}
	return nil
}

// reportGated emits a Gated record for the pod unless one was emitted before (toldGated).
func (m *Machine) reportGated(of *profile.Profile, p *object.Pod, s *decision.Status) {
	ps := m.pods.byUID[p.UID]
	if ps.toldGated {
		return
	}
	ps.toldGated = true
	r := &decision.Decision{UID: p.UID, Pod: p.NamespacedName(), Profile: of.Name, Result: decision.ResultGated, PreEnqueueStatus: s, NodesTotal: m.table.Live()}
	if s.Plugin != "" {
		r.RejectedBy = []string{s.Plugin}
	}
	m.emit(AttemptDone{r})
}

// podAssigned handles a pod that the API shows bound, by whomever: it is placed on that node, and
// an assumption of it ends. It leaves the queue, unless a reply is still to end its binding cycle.
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

// assignedPodChanged passes the update of a placed pod to the queue. A pod that was assumed
// until now may be bound with other labels or smaller requests.
func (w *podWatch) assignedPodChanged(old, now *object.Pod) {
	if old.Terminating && !now.Terminating { // etcd was restored: its preemptors may preempt anew
		w.moveAll(anythingChanged())
	}
	if a := queue.Changes(old, now); old.NodeName != "" || a&^(framework.UpdatePodScaleUp|framework.UpdateOther) != 0 {
		w.moveAll(&framework.Event{Resource: framework.AssignedPod, ActionType: a, OldPod: boundTo(old, now.NodeName), NewPod: now})
	}
}

// podGone ends everything for a deleted pod, found by UID or, without one, by name.
func (w *podWatch) podGone(e PodGone) {
	ps := w.pods.byUID[e.UID]
	if e.UID == "" {
		ps = w.pods.byName[types.NamespacedName{Namespace: e.Namespace, Name: e.Name}]
	}
	if ps != nil {
		w.endPod(ps)
	}
}

// endPod ends everything under way for a pod that is deleted, and removes it from its
// node and the queue.
func (w *podWatch) endPod(ps *podState) {
	if name := ps.pod.NamespacedName(); w.pods.byName[name] == ps {
		delete(w.pods.byName, name)
	}
	w.pods.setAssumed(ps, false)
	w.groups.handOn(ps)
	ps.unconfirmed, ps.goneByRead, ps.toldGated, ps.nominating, ps.condition, ps.preemption = nil, nil, false, nil, nil, nil
	w.evictions.gone(ps)
	w.extenders.finish(ps)
	waited := ps.entry != nil
	if waited {
		p, kept := ps.entry.Pod, ps.entry.NominatedNode()
		w.groups.rejoinAs(ps.pod, nil) // before its group is asked whether it is gated
		w.attempts.dequeue(ps)
		w.recordChange(framework.UnscheduledPod, framework.Delete)
		w.nominations.moved(p, kept, "")
		if p.PodGroup() != "" {
			w.groups.clearGated(p.GroupKey())
		}
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
	pl := w.table.Pod(ps.pod.UID)
	w.statuses.left(ps.pod, pl != nil)
	if pl != nil {
		w.takeOff(pl)
	}
	if !waited {
		w.groups.rejoinAs(ps.pod, nil)
		w.groups.placedGone(ps.pod)
	}
	w.pods.forget(ps)
}

// takeOff removes a placed pod from its node and passes that to the queue as its deletion. If the
// pod was being deleted, pods nominated to the node may be tried again.
func (w *podWatch) takeOff(pl *table.Placed) {
	gone := boundTo(pl.Pod, w.table.Name(pl.Row))
	w.table.RemovePod(gone.UID)
	w.moveAll(&framework.Event{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: gone})
	if gone.Terminating {
		w.evictions.preemptors.victimLeft(pl.Row)
	}
}

// podDecodeFailed handles a pod that cannot be decoded. A pending pod leaves the queue,
// with a record and an Event that say why. A placed pod is read from the API.
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

// boundTo returns p if it is on the node, else a copy with that node.
func boundTo(p *object.Pod, node string) *object.Pod {
	if p.NodeName == node {
		return p
	}
	bound := *p
	bound.NodeName = node
	return &bound
}

// podState holds all that the machine knows of one pod, except for what the table knows
// of a placed one. An event looks it up once; forget removes it.
type podState struct {
	pod *object.Pod // as the API showed it last
	// entry is the pod's entry in the queue; nil if it is not queued. A pod in flight has one.
	entry *queue.Entry
	// request is the pod as the engine takes it; nil if the pod is not pending.
	request *engine.Request
	// extender is the attempt that waits for an extender or PostFilter; nil: there is none.
	extender *extenderCycle
	// binding is the pod's binding cycle, nil when there is none.
	binding *bindingCycle
	// ended is a binding cycle that ended before the reply to what it sent; nil: none.
	ended *bindingCycle
	// assumed is set if the pod is placed on a node and the API has not shown it bound yet.
	assumed bool
	// unconfirmed is set while a read is to decide whether the pod is bound.
	unconfirmed *unconfirmedBinding
	// staleRead is set if etcd was restored after a read of the pod was sent, so that its
	// reply may be older.
	staleRead bool
	// goneByRead is set if a read showed the pod to be deleted and the watch has not yet.
	goneByRead *goneByRead
	// toldGated is set if a Gated record was emitted for the pod; in a group of Coscheduling,
	// since the last attempt or change of the group.
	toldGated bool
	// nominating is the nominatedNodeName in a patch that the API does not show yet; nil:
	// there is none.
	nominating *string
	// condition is the PodScheduled condition in a patch that the API does not show yet.
	condition *object.Condition
	// stated is the pod's element in conditions.order, the PodScheduled conditions that are
	// computed again from time to time; nil if the pod has none there. statedAt is when the
	// condition was computed last, and statedNews the value of step.news then.
	stated     *list.Element
	statedAt   time.Time
	statedNews uint64
	// preemption is the pod's last preemption; nil if no victim of it is still leaving.
	preemption *preemption
	// preemptionCount counts the pod's preemptions since it was last placed.
	preemptionCount preemptionCount
	// noVictims is set if the last attempt found no victims on any node, and only because of
	// plugins that rejected the pod. Their queueing hints tell when preemption may help.
	noVictims bool
	// eviction is set while the pod is evicted as a victim.
	eviction *eviction
}

// pods holds the state of every pod that is queued, in a binding cycle or placed, and of
// deleted pods about which a reply is outstanding.
type pods struct {
	table    *table.Table
	profiles profiles

	byUID        map[types.UID]*podState
	byName       map[types.NamespacedName]*podState // those that are not deleted
	assumedCount int                                // states with assumed set
}

// placed reports whether the pod is on a node in the table, bound or assumed.
func (x *pods) placed(ps *podState) bool { return x.table.Pod(ps.pod.UID) != nil }

// state adds and returns the state of a pod that is not known by name: a new one, or the one that
// was left when the pod was deleted. It adds the pod to its group.
func (x *pods) state(p *object.Pod) *podState {
	ps := x.byUID[p.UID]
	if ps == nil {
		ps = &podState{pod: p}
		x.byUID[p.UID] = ps
	}
	x.byName[p.NamespacedName()] = ps
	x.table.Groups().Join(p)
	return ps
}

// entry returns the pod's entry in the queue; nil if it has none.
func (x *pods) entry(uid types.UID) *queue.Entry {
	if ps := x.byUID[uid]; ps != nil {
		return ps.entry
	}
	return nil
}

// foundNoVictims reports whether the pod's last attempt found that preemption cannot help.
func (x *pods) foundNoVictims(p *object.Pod) bool {
	ps := x.byUID[p.UID]
	return ps != nil && ps.noVictims
}

// forget removes the state of a deleted pod, unless a reply about it is outstanding. It
// does nothing for a pod that is not deleted.
func (x *pods) forget(ps *podState) {
	if x.byName[ps.pod.NamespacedName()] != ps && ps.ended == nil && ps.eviction == nil {
		delete(x.byUID, ps.pod.UID)
		x.profiles.endAttempt(ps.pod)
	}
}

// setAssumed sets ps.assumed and counts the assumed pods in assumedCount.
func (x *pods) setAssumed(ps *podState, assumed bool) {
	if ps.assumed != assumed {
		ps.assumed = assumed
		if assumed {
			x.assumedCount++
		} else {
			x.assumedCount--
		}
	}
}

// sorted returns the states of all pods, sorted by UID.
func (x *pods) sorted() []*podState {
	states := make([]*podState, 0, len(x.byUID))
	for _, ps := range x.byUID { // any order: sorted below
		states = append(states, ps)
	}
	slices.SortFunc(states, func(a, b *podState) int { return strings.Compare(string(a.pod.UID), string(b.pod.UID)) })
	return states
}

// underway is a list of attempts that wait for something (binding or extender cycles), at
// most one for each pod. It is sorted by the pods' UIDs, so that the machine goes through
// it in the same order in every replay.
type underway[T interface {
	comparable
	uid() types.UID
}] []T

// find returns the index of the cycle of x's pod and true, or false and the index at which
// to insert x if the pod has none.
func (l underway[T]) find(x T) (int, bool) {
	return slices.BinarySearchFunc(l, x.uid(), func(y T, uid types.UID) int {
		return strings.Compare(string(y.uid()), string(uid))
	})
}

// add inserts the cycle in the order of UIDs. The list must have no cycle of its pod.
func (l *underway[T]) add(x T) {
	at, _ := l.find(x)
	*l = slices.Insert(*l, at, x)
}

// remove removes the cycle if it is in the list.
func (l *underway[T]) remove(x T) {
	if at, ok := l.find(x); ok && (*l)[at] == x {
		*l = slices.Delete(*l, at, at+1)
	}
}

// overcommits counts the pods that the API shows bound to a node that lacks resources for
// them, as happens when two schedulers decide at the same time.
type overcommits struct {
	*step
	pods     int
	counting bool // set at the first decision; pods that were bound before do not count
}

// check handles a pod that was just shown bound to the node. If the node lacks resources for it,
// check counts the pod and emits Overcommitted. It does nothing before the first decision.
func (o *overcommits) check(node string, p *object.Pod) {
	row, ok := o.table.Find(node)
	if !ok || !o.counting {
		return
	}
	if e, over := o.table.Excess(row, p); over {
		o.pods++
		o.emit(Overcommitted{Pod: p, Node: node, Excess: e})
	}
}

// Overcommitted is an effect that reports a pod bound to a node that lacks resources for it.
type Overcommitted struct {
	Pod  *object.Pod
	Node string
	table.Excess
}

func (Overcommitted) effect() {}

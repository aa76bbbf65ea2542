package queue

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// group holds the pods of one PodGroup that wait, or are tried, together: kube-scheduler's
// queued entity. They are all in one place, they are popped at once, and their turn is the
// group's. Pods whose bindings are under way are in flight by themselves, and not in it.
type group struct {
	turn
	name types.NamespacedName // under which the queue has it
	// info is what QueueSort compares: the first pod, with the group and its times.
	info    framework.QueuedPodInfo
	waiting []*Entry // all in one place
	tried   []*Entry // popped, in the order of their try; nil: the group is not being tried
	gate    *Entry   // the waiting pod that a PreEnqueue plugin rejects; nil: none is gated
	how     strategy // during MoveAllToActiveOrBackoff: the strongest answer for a pod of it
}

// groups are the groups that have pods, by name.
type groups map[types.NamespacedName]*group

// names returns the names of the groups, sorted.
func (all groups) names() []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(all), func(a, b types.NamespacedName) int { // any order: sorted
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// getOrAdd returns the group of this name. If there is none, it adds one with the turn of e.
func (all groups) getOrAdd(o *Options, name types.NamespacedName, e *Entry) *group {
	g := all[name]
	if g == nil {
		g = &group{turn: e.own, name: name, info: e.QueuedPodInfo}
		g.order, g.info.Group, g.info.HalfBound = &g.info, o.PodGroup(name), o.HalfBound(name)
		all[name] = g
	}
	return g
}

// GroupResult is how an attempt to place a pod group ended.
type GroupResult uint8

const (
	GroupPlaced   GroupResult = iota // pods that were not placed are tried again at once
	GroupRejected                    // it does not fit
	GroupFailed                      // the attempt ended in an error
)

// hasGroup reports whether the pod waits with a group.
func (o *Options) hasGroup(p *object.Pod) bool { return o.PodGroup != nil && p.PodGroup() != "" }

// Group returns the entries that were popped with this one, in the order in which they are
// to be tried, itself included; nil for a pod that was popped by itself. The slice is valid
// until a pod of it is deleted, or EndGroup.
func (e *Entry) Group() []*Entry {
	if e.group == nil {
		return nil
	}
	return e.group.tried
}

// members returns the pods that wait with e as a group, or e alone.
func (e *Entry) members() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		if e.group == nil {
			yield(e)
			return
		}
		for _, member := range e.group.waiting {
			if !yield(member) {
				return
			}
		}
	}
}

// join adds a pod, which is nowhere or in flight, to the waiting pods of its group, in their place.
// The first pod makes the group active, or lets it wait for what is left of its own backoff. A
// further one ends the wait of a rejected group: with it the group may fit. While the group is
// being tried, the pod counts as tried with it.
func (q *Queue) join(now time.Time, e *Entry, event string) {
	name := e.Pod.GroupKey()
	g := q.groups.getOrAdd(&q.opts, name, e)
	e.group, e.turn = g, &g.turn
	if g.tried != nil { // another attempt of the pod ended within that of its group
		g.tried, e.returned = append(g.tried, e), true
		return
	}
	g.waiting = append(g.waiting, e)
	if len(g.waiting) == 1 {
		q.moveToActiveOrBackoff(now, e, afterBackoff, event)
		return
	}
	at := g.waiting[0].place
	switch s := q.opts.PreEnqueue(e.Pod); {
	case s != nil && at == Gated: // no gate that is shut need be asked again
		q.plugins.remove(g.gate)
		g.gate, e.preEnqueueStatus = e, s
	case s != nil || at == Gated || at == Unschedulable:
		q.moveToActiveOrBackoff(now, e, afterBackoff, event)
		return
	}
	q.putAlone(now, e, at, event, "")
}

// leaveGroup takes the pod out of its group, if it has one.
func (e *Entry) leaveGroup() {
	g := e.group
	if g == nil {
		return
	}
	is := func(other *Entry) bool { return other == e }
	g.waiting, g.tried = slices.DeleteFunc(g.waiting, is), slices.DeleteFunc(g.tried, is)
	e.group, e.turn, e.returned = nil, &e.own, false
}

// memberLeft follows the deletion of pod e from its group g. If e gated the group, or the group was
// rejected, the group runs PreEnqueue and may be tried again. If it is ready or in backoff, it is
// gated if it is too small now. A plugin that counts a group's pods says the same of each, so one
// of them is asked. A group without pods is removed. from is the place that e had.
func (q *Queue) memberLeft(now time.Time, g *group, e *Entry, from Place) {
	if g.info.Pod == e.Pod && len(g.waiting) > 0 {
		q.reorder(g, func() { g.info.Pod = g.waiting[0].Pod })
	}
	switch {
	case len(g.waiting) == 0:
		if len(g.tried) == 0 {
			delete(q.groups, g.name)
		}
	case from == Unschedulable || g.gate == e:
		q.moveToActiveOrBackoff(now, g.waiting[0], afterBackoff, Label(framework.UnscheduledPod, framework.Delete))
	case from != Gated && q.opts.PreEnqueue(g.waiting[0].Pod) != nil:
		q.enqueueGroup(now, g.waiting[0], Gated, Label(framework.UnscheduledPod, framework.Delete), "")
	}
}

// popGroup pops the waiting pods of the group and returns the first that is to be tried: they are
// ordered by priority, by the number of their attempts and by time, as in kube-scheduler.
func (q *Queue) popGroup(now time.Time, g *group) *Entry {
	g.tried, g.waiting = g.waiting, nil
	if g.tried[0].place == Backoff {
		q.arrivals[Arrival{Queue: "active", Event: eventPopFromBackoff, Of: WholeGroup}]++
	}
	slices.SortFunc(g.tried, func(a, b *Entry) int {
		return cmp.Or(cmp.Compare(b.Pod.Priority, a.Pod.Priority), cmp.Compare(b.Tries, a.Tries), a.Timestamp.Compare(b.Timestamp), cmp.Compare(a.Sequence, b.Sequence))
	})
	for _, e := range g.tried {
		q.handOut(now, e)
	}
	return g.tried[0]
}

// EndGroup ends the attempt in which the pods of the group of this name were popped together. Those
// that were requeued wait together again; the others, which are being bound, are in flight by
// themselves. A rejected group is unschedulable until an event may help one of its pods. It waits
// its backoff out instead if an unknown plugin, or none, rejected one of its pods.
func (q *Queue) EndGroup(now time.Time, name types.NamespacedName, result GroupResult) {
	g := q.groups[name]
	if g == nil || g.tried == nil {
		return
	}
	rejected, others := g.endTry()
	if len(g.waiting) == 0 {
		delete(q.groups, name)
	} else {
		q.endAttempt(now, g, result, rejected)
	}
	for _, e := range others {
		q.insert(now, e, eventAttemptFailure)
	}
}

// endTry ends that the group is being tried: its pods that were requeued wait again. rejected
// reports whether known plugins rejected each of these. others are requeued pods that name another
// group by now, or none, and are in no group.
func (g *group) endTry() (rejected bool, others []*Entry) {
	back := g.tried
	g.tried, rejected = nil, true
	for _, e := range back {
		requeued := e.returned
		e.returned = false
		if requeued && e.Pod.GroupKey() == g.name {
			rejected = rejected && len(e.rejectors) > 0 && len(e.unknown) == 0
			g.waiting = append(g.waiting, e)
			continue
		}
		e.group, e.turn = nil, &e.own
		if requeued {
			others = append(others, e)
		}
	}
	return rejected, others
}

// endAttempt moves the waiting pods of the group, which were tried, to where they wait next.
// rejected is set if known plugins rejected each of them.
func (q *Queue) endAttempt(now time.Time, g *group, result GroupResult, rejected bool) {
	how, first := g.count(result, rejected), g.waiting[0]
	g.info.Pod = first.Pod
	if how != immediately {
		g.info.Timestamp, g.info.Sequence = now, first.Sequence
	}
	g.backoffEnd = q.backoffs.backoffEnd(first)
	if how == afterBackoff && q.backoffs.backingOff(first, now) {
		q.enqueue(now, first, ErrorBackoff, eventAttemptFailure, how.queue())
		return
	}
	if how == skip {
		for _, e := range g.waiting {
			how = max(how, q.strategySincePop(e))
		}
	}
	if how == skip {
		q.moveGroup(now, g, Unschedulable, eventAttemptFailure, skip.queue())
	} else {
		q.moveToActiveOrBackoff(now, first, how, eventAttemptFailure)
	}
}

// EndGroups ends the attempts of all groups that were popped, as failed.
func (q *Queue) EndGroups(now time.Time) {
	for _, name := range q.groups.names() {
		q.EndGroup(now, name, GroupFailed)
	}
}

// count counts an attempt that ended with result, and returns where the group goes if nothing
// happened meanwhile. rejected is set if known plugins rejected each pod of it.
func (g *group) count(result GroupResult, rejected bool) strategy {
	switch result {
	case GroupPlaced:
		g.rejections, g.errors = 0, 0
		return immediately
	case GroupRejected:
		g.rejections++
		g.errors = 0
		if rejected {
			return skip
		}
		return afterBackoff
	}
	g.errors++
	return afterBackoff
}

// changeGroup replaces the pod of e, which waits, by its newer state p, which names another group,
// or none. It waits there as if it had just been added.
func (q *Queue) changeGroup(now time.Time, e *Entry, p *object.Pod) {
	old, event := e.Pod, Label(framework.TargetPod, framework.UpdateOther)
	q.remove(now, e, event)
	e.Pod = p
	q.updateNomination(e, old)
	e.rejectors, e.unknown, e.preEnqueueStatus = nil, nil, nil
	q.stamp(now, e)
	q.insert(now, e, event)
}

// PodGroupChanged follows a PodGroup that was created, deleted or changed. Its waiting pods run
// PreEnqueue again and are sorted in again. A gated or unschedulable group that passes is tried
// again; PreEnqueue gates the pods of a PodGroup that does not exist.
func (q *Queue) PodGroupChanged(now time.Time, name types.NamespacedName) {
	g := q.groups[name]
	if g == nil {
		return
	}
	q.reorder(g, func() { g.info.Group, g.info.HalfBound = q.opts.PodGroup(name), q.opts.HalfBound(name) })
	if len(g.waiting) > 0 {
		to := g.waiting[0].place
		if to == Gated || to == Unschedulable {
			q.moveToActiveOrBackoff(now, g.waiting[0], afterBackoff, Label(framework.ResourceOf(object.PodGroups), framework.Add))
			if to == Gated && g.gate != nil {
				g.askOthers(q.opts.PreEnqueue)
			}
			return
		}
		q.enqueueGroup(now, g.waiting[0], to, Label(framework.ResourceOf(object.PodGroups), framework.Delete), "")
	}
}

// UpdateHalfBound sorts the group in again if Options.HalfBound's answer for it has changed.
func (q *Queue) UpdateHalfBound(name types.NamespacedName) {
	g := q.groups[name]
	if g == nil {
		return
	}
	if half := q.opts.HalfBound(name); half != g.info.HalfBound {
		q.reorder(g, func() { g.info.HalfBound = half })
	}
}

// updateOrder sorts a group in again after an update of the pod that stands for it in QueueSort.
// old is that pod before.
func (q *Queue) updateOrder(e *Entry, old *object.Pod) {
	if g := e.group; g != nil && g.info.Pod == old {
		q.reorder(g, func() { g.info.Pod = e.Pod })
	}
}

// reorder calls change, which may change where the group comes in the order of the queue,
// and sorts its waiting pods in again.
func (q *Queue) reorder(g *group, change func()) {
	for _, e := range g.waiting {
		q.heaps[e.place].remove(e)
	}
	change()
	for _, e := range g.waiting {
		q.heaps[e.place].push(e)
	}
}

// enqueueGroup runs PreEnqueue for the waiting pods of the group of e and moves them all to the
// place to, or to gated if a plugin rejects one of them. In a group that stays gated only e and the
// rejected pod are put there again. hinted is the queue that queueing hints name, or "".
func (q *Queue) enqueueGroup(now time.Time, e *Entry, to Place, event, hinted string) {
	g, before := e.group, e.group.gate
	gate, status := g.findGate(q.opts.PreEnqueue)
	g.gate = gate
	if gate == nil || g.waiting[0].place != Gated {
		if gate != nil {
			to = Gated
		}
		for _, member := range g.waiting {
			member.preEnqueueStatus = status
		}
		if gate != nil {
			g.askOthers(q.opts.PreEnqueue)
		}
		q.moveGroup(now, g, to, event, hinted)
		return
	}
	if before != nil {
		q.plugins.remove(before)
	}
	gate.preEnqueueStatus, e.preEnqueueStatus = status, status
	q.putAlone(now, gate, Gated, event, hinted)
	if e != gate {
		q.putAlone(now, e, Gated, event, hinted)
	}
}

// findGate returns a waiting pod of the group that a PreEnqueue plugin rejects, with the
// status; nil if none is rejected. It begins at the pod that was rejected before: if the pods
// of a large group are admitted one by one, few are asked about twice.
func (g *group) findGate(preEnqueue func(*object.Pod) *decision.Status) (*Entry, *decision.Status) {
	from := max(0, slices.Index(g.waiting, g.gate))
	for i := range g.waiting {
		e := g.waiting[(from+i)%len(g.waiting)]
		if s := preEnqueue(e.Pod); s != nil {
			return e, s
		}
	}
	return nil, nil
}

// askOthers runs PreEnqueue for each waiting pod of the gated group but the gate, so that each says
// why it is gated. A pod that passes keeps the status of the gate. Pods of Kubernetes' own groups
// are not asked: kube-scheduler writes nothing of it.
func (g *group) askOthers(preEnqueue func(*object.Pod) *decision.Status) {
	for _, e := range g.waiting {
		if e == g.gate || e.Pod.KubernetesGroup() != "" {
			continue
		}
		e.preEnqueueStatus = g.gate.preEnqueueStatus
		if s := preEnqueue(e.Pod); s != nil {
			e.preEnqueueStatus = s
		}
	}
}

// moveGroup moves the waiting pods of the group that are elsewhere to a place because of the event,
// and counts their arrivals. hinted is the queue that queueing hints name, or "".
func (q *Queue) moveGroup(now time.Time, g *group, to Place, event, hinted string) {
	if queue := to.metric(); g.waiting[0].place != to {
		q.arrivals[Arrival{queue, event, queue == hinted, WholeGroup}]++
	}
	for _, e := range g.waiting {
		if e.place != to {
			q.putAlone(now, e, to, event, hinted)
		}
	}
}

// saved returns the groups for a snapshot made at the time now.
func (all groups) saved(now time.Time) (saved []SavedGroup) {
	for _, name := range all.names() {
		g := all[name]
		s := SavedGroup{Namespace: name.Namespace, Name: name.Name, Queued: ageOf(g.info.Timestamp, now), Sequence: g.info.Sequence,
			Rejections: g.rejections, Errors: g.errors, BackoffEnd: ageOf(g.backoffEnd, now)}
		if g.gate != nil {
			s.Gate = g.gate.Pod.UID
		}
		saved = append(saved, s)
	}
	return saved
}

// restoreGroups puts the waiting pods of groups among the restored entries into their groups and
// places. A group that is not in saved, as in older snapshots, gets the turn of its first pod.
func (q *Queue) restoreGroups(now time.Time, saved []SavedGroup, entries []*Entry) {
	for _, e := range entries {
		if e.place == InFlight || !q.opts.hasGroup(e.Pod) {
			continue
		}
		name := e.Pod.GroupKey()
		g := q.groups.getOrAdd(&q.opts, name, e)
		e.group, e.turn = g, &g.turn
		g.waiting = append(g.waiting, e)
	}
	gates := map[types.UID]bool{}
	for i := range saved {
		s := &saved[i]
		if g := q.groups[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}]; g != nil {
			g.info.Timestamp, g.info.Sequence = s.Queued.Time(now), s.Sequence
			g.rejections, g.errors, g.backoffEnd = s.Rejections, s.Errors, s.BackoffEnd.Time(now)
			gates[s.Gate] = true
		}
	}
	for _, name := range q.groups.names() {
		g := q.groups[name]
		g.gather(gates)
		for _, e := range g.waiting {
			q.enter(now, e)
		}
	}
}

// gather sets one place for the restored pods of a group, which older snapshots may have in
// several. The pods are gated if one of them is, and else active if their places differ. gates
// holds the UIDs of the pods that gate their groups.
func (g *group) gather(gates map[types.UID]bool) {
	to := g.waiting[0].place
	for _, e := range g.waiting {
		if e.place == Gated && (g.gate == nil || gates[e.Pod.UID]) {
			g.gate = e
		}
		if e.place != to {
			to = Active
		}
	}
	if g.gate != nil {
		to = Gated
	}
	for _, e := range g.waiting {
		if e.place = to; to == Gated && e.preEnqueueStatus == nil {
			e.preEnqueueStatus = g.gate.preEnqueueStatus
		}
	}
}

// checkGroups returns an error if a group's pods are not in one place, or do not know it.
func (q *Queue) checkGroups() error {
	grouped := 0
	for _, name := range q.groups.names() {
		g := q.groups[name]
		grouped += len(g.waiting) + len(g.tried)
		switch {
		case len(g.waiting) == 0 && len(g.tried) == 0 || g.order != &g.info:
			return fmt.Errorf("group %s has no pods, or is not in its own order", name)
		case g.info.HalfBound != q.opts.HalfBound(name):
			return fmt.Errorf("group %s is half bound: %t, which the queue does not know", name, !g.info.HalfBound)
		case g.gate != nil && !slices.Contains(g.waiting, g.gate), (g.gate != nil) != (len(g.waiting) > 0 && g.waiting[0].place == Gated):
			return fmt.Errorf("group %s is gated by a pod that does not wait, or waits elsewhere", name)
		}
		for _, e := range slices.Concat(g.waiting, g.tried) {
			if e.group != g || e.turn != &g.turn || g.name != name || e.place != InFlight && e.Pod.GroupKey() != name {
				return fmt.Errorf("pod %s is among the pods of group %s and does not know it", e.Pod.UID, name)
			}
		}
		for _, e := range g.waiting {
			if e.place != g.waiting[0].place {
				return fmt.Errorf("pod %s of group %s is %s, another one %s", e.Pod.UID, name, e.place, g.waiting[0].place)
			}
		}
	}
	for e := range q.Entries() {
		if e.group != nil {
			grouped--
		} else if e.place != InFlight && q.opts.hasGroup(e.Pod) {
			return fmt.Errorf("pod %s waits without its group", e.Pod.UID)
		}
	}
	if grouped != 0 {
		return fmt.Errorf("%d pods of groups are in no place", grouped)
	}
	return nil
}

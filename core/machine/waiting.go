package machine

import (
	"cmp"
	"container/list"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/table"
)

// nominations changes the nominations of queued pods. The queue holds them, and the engine reads
// them here (NominatedTo, NominatedNode). Changes are passed to the queue as events, and written to
// the API.
type nominations struct {
	*step
	*queue.Queue
	pods *pods
}

// nominating is how a pod's nomination changes at the end of an attempt.
type nominating struct {
	keep bool        // it does not change; node is ignored
	node string      // the node that the pod is nominated to; "" for none
	ends []types.UID // pods of lower priority whose nomination to the node ends
}

// moved posts to the queue, as an event AssignedPod/Delete, that p left the node kept, where it was
// nominated: it is nominated to or placed on now ("" for none). The event may move pods of at most
// p's priority. If p has an ElasticQuota it may also move pods of any priority with a quota in
// another namespace: p no longer counts against the sum of the mins. It moves no pods of p's own
// group, for which the room was free before. It does nothing if kept is "" or equal to now.
func (n *nominations) moved(p *object.Pod, kept, now string) {
	if kept == "" || kept == now {
		return
	}
	old := *p
	old.NodeName, old.NominatedNode = "", kept // whoever bound it to another node
	n.queue.MoveAllToActiveOrBackoff(n.now, &framework.Event{
		Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: &old, Table: n.table,
	}, func(other *object.Pod) bool {
		return other.UID != p.UID && (p.PodGroup() == "" || other.GroupKey() != p.GroupKey()) && (other.Priority <= p.Priority || n.shareMins(other, p))
	})
}

// shareMins reports whether both pods have an ElasticQuota, in different namespaces: what is kept
// for one then counts against the other, whatever their priorities.
func (n *nominations) shareMins(a, b *object.Pod) bool {
	queues := quota.Of(n.table)
	return a.Namespace != b.Namespace && queues.Queue(a.Namespace) != nil && queues.Queue(b.Namespace) != nil
}

// clear ends the nomination of a queued pod, in the queue and in the API. The room that it kept may
// wake other pods.
func (n *nominations) clear(ps *podState) {
	p, kept := ps.entry.Pod, ps.entry.NominatedNode()
	n.queue.Nominate(ps.entry, "")
	n.moved(p, kept, "")
	if none := n.toWrite(ps, ""); none != nil {
		n.emit(PatchStatus{Pod: p, Nominated: none})
	}
}

// toWrite returns the nominatedNodeName to write so that the API shows the pod
// nominated to the node, and records that it is written. It returns nil if the API
// shows it already and no other write is under way.
func (n *nominations) toWrite(ps *podState, node string) *string {
	if node == ps.pod.NominatedNode && (ps.nominating == nil || *ps.nominating == node) {
		return nil
	}
	ps.nominating = &node
	return &node
}

// all returns the pods that are nominated to nodes that exist, with the revision of nominations and
// nodes.
func (n *nominations) all() quota.Nominated {
	_, now, _ := n.Renominated(0)
	return quota.Nominated{Revision: quota.Revision{Nominations: now, Nodes: n.table.NodeRevision()}, All: func(yield func(*object.Pod) bool) {
		for _, node := range n.NominatedNodes() {
			if _, known := n.table.Find(node); !known {
				continue
			}
			for _, p := range n.NominatedTo(node) {
				if !yield(p) {
					return
				}
			}
		}
	}}
}

// NominatedNode returns the node that the pod is nominated to; "" for none.
func (n *nominations) NominatedNode(uid types.UID) string {
	return n.pods.entry(uid).NominatedNode()
}

// preemptors handles the pods that have preempted others and wait for their victims to
// leave.
type preemptors struct {
	*step
	pods     *pods
	heldBack int // preemptions that holdsBack refused so far
}

// retryAfterError moves those preemptors that are unschedulable to the error backoff, because an
// eviction that they relied on failed.
func (w *preemptors) retryAfterError(preemptors []*object.Pod) {
	for _, p := range preemptors {
		if ps := w.pods.byUID[p.UID]; ps != nil && ps.entry != nil {
			w.queue.RetryAfterError(w.now, ps.entry)
		}
	}
}

// activateReady makes each of the preemptors active whose victims are all gone, without waiting for
// its backoff. It is called when a victim's binding stops in memory: such a victim is never
// deleted, so no event would wake its preemptor.
func (w *preemptors) activateReady(preemptors []*object.Pod) {
	for _, p := range preemptors {
		if ps := w.pods.byUID[p.UID]; ps != nil && ps.entry != nil && w.victimsLeaving(ps) == "" {
			w.queue.Activate(w.now, ps.entry)
		}
	}
}

// skipBackoffs lets each of the preemptors whose victims are all gone be tried again: one held in
// backoff before that is over, one that is unschedulable by retryPreemptor. If one does not wait
// any more, its heir is tried instead. Preemptors with victims left go on waiting: it is called for
// each victim, and a thousand preemptors would be tried a million times.
func (w *preemptors) skipBackoffs(preemptors []*object.Pod) {
	for _, p := range preemptors {
		ps := w.pods.byUID[p.UID]
		if ps == nil || ps.entry == nil {
			ps = w.heir(p)
		}
		if ps != nil && w.victimsLeaving(ps) == "" && !w.retryPreemptor(ps) {
			w.queue.SkipBackoff(w.now, ps.entry)
		}
	}
}

// heir returns a pod that waits in the place of p, which preempted others for its group and does
// not wait any more: one of the group that is nominated to a node; nil if there is none.
func (w *preemptors) heir(p *object.Pod) *podState {
	if w.table.Groups() == nil || p.PodGroup() == "" {
		return nil
	}
	for uid := range w.table.Groups().Of(p).Unscheduled() {
		if ps := w.pods.byUID[uid]; ps != nil && ps.entry.NominatedNode() != "" {
			return ps
		}
	}
	return nil
}

// retryPreemptor makes an unschedulable pod be tried again after its victims left: with its whole
// group and after the backoff if it is in a pod group, at once if it has an ElasticQuota. It
// returns false, and does nothing, for any other pod. Other pods may have used the pod's quota or
// its group's room since; no queueing hint wakes it then, and its nomination would keep room from
// them.
func (w *preemptors) retryPreemptor(ps *podState) bool {
	switch p := ps.pod; {
	case ps.entry.Place() != queue.Unschedulable:
		return false
	case p.PodGroup() != "":
		w.queue.PodGroupChanged(w.now, p.GroupKey())
	case quota.Of(w.table).Queue(p.Namespace) != nil:
		w.queue.Activate(w.now, ps.entry)
	default:
		return false
	}
	return true
}

// victimLeft calls retryPreemptor for the pods that are nominated to the node of the row, once no
// pod there is being deleted any more. It is called when one has left. The process that led before
// may have preempted for them.
func (w *preemptors) victimLeft(row table.Row) {
	leaving := func(pl *table.Placed) bool { return pl.Pod.Terminating }
	if slices.ContainsFunc(w.table.Pods(row), leaving) {
		return
	}
	for _, p := range w.queue.NominatedTo(w.table.Name(row)) {
		w.retryPreemptor(w.pods.byUID[p.UID])
	}
}

// evicting reports whether the pod is being preempted: its eviction is under way, or its binding
// cycle is being stopped.
func (w *preemptors) evicting(uid types.UID) bool {
	ps := w.pods.byUID[uid]
	return ps != nil && ps.evicting()
}

// victimsLeaving returns the node for which the pod's last preemption made room, while a victim of
// it is still leaving. If none is, it returns "" and forgets the preemption.
func (w *preemptors) victimsLeaving(ps *podState) string {
	if ps.preemption == nil {
		return ""
	}
	if slices.ContainsFunc(ps.preemption.victims, w.evicting) {
		return ps.preemption.node
	}
	ps.preemption = nil
	return ""
}

// leaving returns the victims of the pod's last preemption that are still leaving.
func (w *preemptors) leaving(ps *podState) (victims []*object.Pod) {
	if ps.preemption == nil {
		return nil
	}
	for _, uid := range ps.preemption.victims {
		if pl := w.table.Pod(uid); pl != nil && w.evicting(uid) {
			victims = append(victims, pl.Pod)
		}
	}
	return victims
}

// stays reports whether the pod is placed and neither being deleted nor being preempted already. A
// victim that stays must still be evicted.
func (w *preemptors) stays(uid types.UID) bool {
	pl := w.table.Pod(uid)
	return pl != nil && !pl.Pod.Terminating && !w.evicting(uid)
}

// A pod that has preempted freePreemptions times without being placed waits between two
// preemptions from then on, twice as long each time. Somebody else takes the resources each
// time, such as another scheduler, whose pods it preempts again and again. The longest wait
// is as long as the queue lets a pod wait without an event.
const (
	freePreemptions = 10               // preemptions without a wait
	firstWait       = time.Minute      // before the next one
	lastWait        = 5 * time.Minute  // the longest wait
	preemptionsOver = 30 * time.Minute // time without a preemption after which the count is 0 again
)

// heldBack is the message for a pod that could preempt others but must wait.
const heldBack = "preemption: held back, as 10 preemptions in a row have not placed the pod"

// preemptionCount counts how often a pod preempted others without being placed. A pod that
// was placed, or has not preempted for preemptionsOver, starts at 0 again.
type preemptionCount struct {
	n    int       // preemptions
	last time.Time // of the last preemption
}

// add counts one preemption at time now, however many victims it has. It counts from 0 again
// if the last one was longer than preemptionsOver ago.
func (p *preemptionCount) add(now time.Time) {
	if p.over(now) {
		p.n = 0
	}
	p.n++
	p.last = now
}

// over reports whether the last preemption is so long ago that the count starts at 0 again.
func (p *preemptionCount) over(now time.Time) bool { return now.Sub(p.last) > preemptionsOver }

// due returns when the pod may preempt again: now, or after its wait.
func (p *preemptionCount) due(now time.Time) time.Time {
	if p.n < freePreemptions || p.over(now) {
		return now
	}
	wait := firstWait
	for n := p.n; n > freePreemptions && wait < lastWait; n-- {
		wait *= 2
	}
	return p.last.Add(min(wait, lastWait))
}

// holdsBack reports whether the pod must still wait before it preempts these victims, and counts
// each true in heldBack. A pod whose victims are all leaving already need not wait.
func (w *preemptors) holdsBack(a *attempt, victims []types.UID) bool {
	if !slices.ContainsFunc(victims, w.stays) || !a.state.preemptionCount.due(w.now).After(w.now) {
		return false
	}
	w.heldBack++
	return true
}

// conditionToWrite returns the condition to write so that the API shows c, and records
// that it is written. It returns nil if the API shows it already and no other write is
// under way: a watch that lags still shows what was there before the last write.
func conditionToWrite(ps *podState, c *object.Condition) *object.Condition {
	if *c == ps.entry.Pod.Scheduled && (ps.condition == nil || *ps.condition == *c) {
		return nil
	}
	ps.condition = c
	return c
}

// Times of conditions.
const (
	conditionAge   = time.Minute            // age at which a condition is computed again
	conditionPause = 200 * time.Millisecond // between two conditions that are computed again
)

// conditions lists the PodScheduled conditions of unschedulable pods, the oldest first.
// A condition is true at the time of the last attempt; events that do not help the pod
// may change its reasons. So a condition that is conditionAge old is computed again
// without an attempt, at most one in each conditionPause.
type conditions struct {
	*step
	pods *pods
	// present returns the condition that an attempt for the pod would end with now, nil if
	// only an attempt can tell.
	present func(*object.Pod) *object.Condition

	order list.List // of *podState
	next  time.Time // no condition is computed again before
}

// clear removes all conditions from the list, and ends the pause between two of them.
func (l *conditions) clear() {
	l.order.Init()
	l.next = time.Time{}
}

// track records that the pod's condition was computed just now, and lists it last. A
// pod that is not unschedulable is removed from the list instead.
func (l *conditions) track(ps *podState) {
	l.untrack(ps)
	if ps.entry.Place() == queue.Unschedulable {
		ps.statedAt, ps.statedNews = l.now, l.news
		ps.stated = l.order.PushBack(ps)
	}
}

// untrack removes the pod from the list of those whose condition is computed again from
// time to time.
func (l *conditions) untrack(ps *podState) {
	if ps.stated != nil {
		l.order.Remove(ps.stated)
		ps.stated = nil
	}
}

// oldest returns the pod whose condition is the next to compute again, and when that is due. It
// returns nil if no condition is listed, or if nothing but time has passed since the oldest was
// computed.
func (l *conditions) oldest() (ps *podState, due time.Time) {
	first := l.order.Front()
	if first == nil {
		return nil, due
	}
	if ps = first.Value.(*podState); ps.statedNews == l.news {
		return nil, due
	}
	if due = ps.statedAt.Add(conditionAge); due.Before(l.next) {
		due = l.next
	}
	return ps, due
}

// renew computes the oldest condition again if it is due, and emits a patch if it changed. The pod
// is listed last then. Pods that are not unschedulable any more are removed from the list.
func (l *conditions) renew() {
	for {
		ps, due := l.oldest()
		if ps == nil || due.After(l.now) {
			return
		}
		l.track(ps)
		if ps.stated == nil {
			continue
		}
		l.next = l.now.Add(conditionPause)
		if c := l.present(ps.entry.Pod); c != nil {
			if c = conditionToWrite(ps, c); c != nil {
				l.emit(PatchStatus{Pod: ps.entry.Pod, Condition: c})
			}
		}
		return
	}
}

// saved returns the conditions in the form of a snapshot of the machine.
func (l *conditions) saved() map[*podState]*SavedStated {
	saved := map[*podState]*SavedStated{}
	for e := l.order.Front(); e != nil; e = e.Next() {
		ps := e.Value.(*podState)
		saved[ps] = &SavedStated{Nth: len(saved), Age: queue.Age(l.now.Sub(ps.statedAt)), Latest: ps.statedNews == l.news}
		if len(saved) == 1 && l.next.After(l.now) {
			saved[ps].Pause = l.next.Sub(l.now)
		}
	}
	return saved
}

// restore lists the conditions of the pods in a snapshot of the machine.
func (l *conditions) restore(now time.Time, pods []SavedPod) {
	saved := slices.DeleteFunc(slices.Clone(pods), func(s SavedPod) bool {
		return s.Stated == nil || l.pods.entry(s.UID) == nil
	})
	slices.SortFunc(saved, func(a, b SavedPod) int { return cmp.Compare(a.Stated.Nth, b.Stated.Nth) })
	for _, s := range saved {
		ps := l.pods.byUID[s.UID]
		ps.statedAt, ps.stated = s.Stated.Age.Time(now), l.order.PushBack(ps)
		if s.Stated.Latest {
			ps.statedNews = l.news
		}
		if s.Stated.Pause > 0 {
			l.next = now.Add(s.Stated.Pause)
		}
	}
}

// verify returns an error if a listed condition's pod is not queued, or the list is not
// in order.
func (l *conditions) verify() error {
	states := make([]*podState, 0, l.order.Len())
	for e := l.order.Front(); e != nil; e = e.Next() {
		ps := e.Value.(*podState)
		if ps.stated != e || ps.entry == nil || l.pods.byUID[ps.pod.UID] != ps {
			return fmt.Errorf("the condition of pod %s is kept; it is the pod's own: %t, in the queue: %t", ps.pod.Key(), ps.stated == e, ps.entry != nil)
		}
		states = append(states, ps)
	}
	if !slices.IsSortedFunc(states, func(a, b *podState) int {
		return cmp.Or(a.statedAt.Compare(b.statedAt), cmp.Compare(a.statedNews, b.statedNews))
	}) {
		return fmt.Errorf("the oldest condition is not the first")
	}
	return nil
}

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
)

// nominations are those of the pods in the queue, which keeps them: it also shows them to
// the engine. What changes one also tells the queue, and the API.
type nominations struct {
	*step
	*queue.Queue
	pods *pods
}

// nominating says what becomes of the pod's nomination, and which nominations of other
// pods to its new node end, in favour of the pod.
type nominating struct {
	keep bool
	node string
	ends []types.UID
}

// moved sends the queue an event when a nomination to the node kept ends and
// the pod is nominated to, or placed on, the node now. What was reserved on kept is free
// for other pods of at most its priority.
func (n *nominations) moved(p *object.Pod, kept, now string) {
	if kept == "" || kept == now {
		return
	}
	old := *p
	old.NodeName, old.NominatedNode = "", kept // whoever bound it to another node
	n.queue.MoveAllToActiveOrBackoff(n.now, &framework.Event{
		Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: &old,
	}, func(other *object.Pod) bool { return other.Priority <= p.Priority && other.UID != p.UID })
}

// clear ends the nomination of a pod in the queue.
func (n *nominations) clear(ps *podState) {
	p, kept := ps.entry.Pod, ps.entry.NominatedNode()
	n.queue.Nominate(ps.entry, "")
	n.moved(p, kept, "")
	if none := n.toWrite(ps, ""); none != nil {
		n.emit(PatchStatus{Pod: p, Nominated: none})
	}
}

// toWrite returns what to write so that the API shows the pod nominated to
// the node: nil where it does, and was not asked for anything else meanwhile.
func (n *nominations) toWrite(ps *podState, node string) *string {
	if node == ps.pod.NominatedNode && (ps.nominating == nil || *ps.nominating == node) {
		return nil
	}
	ps.nominating = &node
	return &node
}

// NominatedNode returns the node that the pod is nominated to, "" for none.
func (n *nominations) NominatedNode(uid types.UID) string {
	return n.pods.entry(uid).NominatedNode()
}

// preemptors are the pods that have preempted others and wait for their victims to leave.
type preemptors struct {
	*step
	pods     *pods
	heldBack int // preemptions
}

// retryAfterError moves the preemptors that wait to the error backoff, because an eviction
// that they relied on failed.
func (w *preemptors) retryAfterError(preemptors []*object.Pod) {
	for _, p := range preemptors {
		if ps := w.pods.byUID[p.UID]; ps != nil && ps.entry != nil {
			w.queue.RetryAfterError(w.now, ps.entry)
		}
	}
}

// skipBackoffs lets those preemptors skip their backoff whose victims are all gone. The
// others wait their backoff out: each victim that goes calls all preemptors, and were
// they all tried each time, a thousand of them would be tried a million times.
func (w *preemptors) skipBackoffs(preemptors []*object.Pod) {
	for _, p := range preemptors {
		if ps := w.pods.byUID[p.UID]; ps != nil && ps.entry != nil && w.victimsLeaving(ps) == "" {
			w.queue.SkipBackoff(w.now, ps.entry)
		}
	}
}

// evicting reports whether the pod with this UID is being preempted.
func (w *preemptors) evicting(uid types.UID) bool {
	ps := w.pods.byUID[uid]
	return ps != nil && ps.evicting()
}

// victimsLeaving returns the node on which victims that the pod has preempted are on
// their way out, "" when none is.
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

// stays reports whether a pod is placed and not being deleted or evicted.
func (w *preemptors) stays(uid types.UID) bool {
	pl := w.table.Pod(uid)
	return pl != nil && !pl.Pod.Terminating && !w.evicting(uid)
}

// A pod may preempt so often without being placed. Somebody else takes the room
// then each time, another scheduler say, whose pods it preempts again and again.
// From then on it waits between two preemptions, twice as long each time. The
// last wait is no longer than the queue lets a pod wait without an event.
const (
	freePreemptions = 10
	firstWait       = time.Minute
	lastWait        = 5 * time.Minute
	preemptionsOver = 30 * time.Minute // after that time without one they no longer count
)

// heldBack is the message for a pod that could preempt others but may not yet.
const heldBack = "preemption: held back, as 10 preemptions in a row have not placed the pod"

// preemptionCount counts the preemptions in a row of a pod that has not been placed
// since.
type preemptionCount struct {
	n    int
	last time.Time
}

func (p *preemptionCount) add(now time.Time) {
	if p.over(now) {
		p.n = 0
	}
	p.n++
	p.last = now
}

func (p *preemptionCount) over(now time.Time) bool { return now.Sub(p.last) > preemptionsOver }

// due returns when the next may be.
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

// holdsBack reports whether the pod may not preempt these victims yet, and counts the
// refusal. A pod whose victims are all leaving already is not held back.
func (w *preemptors) holdsBack(a *attempt, victims []types.UID) bool {
	if !slices.ContainsFunc(victims, w.stays) || !a.state.preemptionCount.due(w.now).After(w.now) {
		return false
	}
	w.heldBack++
	return true
}

// conditionToWrite returns what to write so that the API says c of the pod: nil where
// it does, and was not asked to say anything else meanwhile. A watch that lags
// still shows what was there before the last write.
func conditionToWrite(ps *podState, c *object.Condition) *object.Condition {
	if *c == ps.entry.Pod.Scheduled && (ps.condition == nil || *ps.condition == *c) {
		return nil
	}
	ps.condition = c
	return c
}

// How long a condition stands before it is looked at whether it is true still, and the
// time between two such looks.
const (
	conditionAge   = time.Minute
	conditionPause = 200 * time.Millisecond
)

// conditions lists the PodScheduled conditions of unschedulable pods, the oldest first. A
// condition is true at the time of the last attempt; events that do not help the pod may
// change its reasons. So a condition that is conditionAge old is computed again without
// an attempt, at most one in each conditionPause.
type conditions struct {
	*step
	pods *pods
	// present returns the condition that an attempt for the pod would end with now, nil if
	// only an attempt can tell.
	present func(*object.Pod) *object.Condition

	order list.List // of *podState
	next  time.Time // none is looked at before
}

// clear forgets all conditions.
func (l *conditions) clear() {
	l.order.Init()
	l.next = time.Time{}
}

// track records that the pod's condition is true as of now, and lists it last to be renewed.
// A pod that is not unschedulable is no longer listed.
func (l *conditions) track(ps *podState) {
	l.untrack(ps)
	if ps.entry.Place() == queue.Unschedulable {
		ps.statedAt, ps.statedNews = l.now, l.news
		ps.stated = l.order.PushBack(ps)
	}
}

// untrack removes the pod's condition from those to renew.
func (l *conditions) untrack(ps *podState) {
	if ps.stated != nil {
		l.order.Remove(ps.stated)
		ps.stated = nil
	}
}

// oldest returns the pod whose condition is to be renewed next, and when. It
// returns nil if nothing has happened since the oldest was true.
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

// renew computes the oldest condition again if it is due, and emits a patch if
// it changed. It skips pods that are not unschedulable any more, since they are tried
// again.
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

// saved returns the conditions as a snapshot has them.
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

// restore restores the conditions of the pods of a snapshot.
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

// verify returns an error if a condition belongs to a pod that does not wait,
// or the list is out of order.
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

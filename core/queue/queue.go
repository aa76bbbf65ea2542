package queue

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// kube-scheduler's defaults.
const (
	DefaultInitialBackoff   = time.Second
	DefaultMaxBackoff       = 10 * time.Second
	DefaultMaxUnschedulable = 5 * time.Minute
)

// Options are what a queue is made of. The functions may not call the queue.
type Options struct {
	// InitialBackoff is the wait after the first failure. It doubles with each
	// further one, up to MaxBackoff. MaxBackoff 0 means no backoff at all.
	InitialBackoff, MaxBackoff time.Duration
	// MaxUnschedulable is how long a pod stays unschedulable, or gated without
	// being looked at again, when no change calls it. Less than a second
	// counts as a second.
	MaxUnschedulable time.Duration

	// Less is the QueueSort plugin's order, ties allowed. nil: first come,
	// first served.
	Less func(a, b *framework.QueuedPodInfo) bool
	// PreEnqueue runs the PreEnqueue plugins of the pod's profile in order and
	// returns the first status that is not a success, nil when there is none.
	// Its Plugin is the one whose wake rules call the pod back. It may not
	// panic. nil: there are no such plugins.
	PreEnqueue func(p *object.Pod) *decision.Status
	// Waits tells of a pod that is called that it has a reason to wait until its
	// backoff is over, even when there is nothing else to try. nil: none has.
	Waits func(p *object.Pod) bool
	// Wakes returns the wake rules of a plugin of the profile, the profile
	// being a pod's SchedulerName. The answer may not change. Pods rejected by
	// a plugin that is not known are backed off as after an error.
	Wakes func(profile, plugin string) (rules []framework.ClusterEventWithHint, known bool)
}

// Queue is the scheduling queue. Its owner is core/machine; it is not safe for
// concurrent use.
type Queue struct {
	opts     Options
	pods     map[types.UID]*entry
	heaps    [places]heap // the one of InFlight and Nowhere stay empty
	index    index
	inFlight int
	log      log
	sequence uint64
	epoch    time.Time // from which the windows of backoff are counted

	nominated map[string][]*object.Pod // by node, sorted by rank
	nodes     []string                 // the keys of nominated, sorted
	// renominated lists the nodes whose nominations changed, in order.
	renominated struct {
		nodes   []string
		dropped uint64 // so many are not remembered
	}
	arrivals map[Arrival]int
	panics   map[string]int
	frontier []*entry // room for Next
}

// New returns an empty queue.
func New(o Options) *Queue {
	o.InitialBackoff = max(o.InitialBackoff, 0)
	o.MaxBackoff = max(o.MaxBackoff, 0)
	o.MaxUnschedulable = max(o.MaxUnschedulable, time.Second)
	if o.Less == nil {
		o.Less = func(a, b *framework.QueuedPodInfo) bool { return false }
	}
	if o.PreEnqueue == nil {
		o.PreEnqueue = func(*object.Pod) *decision.Status { return nil }
	}
	if o.Waits == nil {
		o.Waits = func(*object.Pod) bool { return false }
	}
	if o.Wakes == nil {
		o.Wakes = func(string, string) ([]framework.ClusterEventWithHint, bool) { return nil, false }
	}
	q := &Queue{
		opts:      o,
		pods:      map[types.UID]*entry{},
		index:     index{wakes: o.Wakes},
		nominated: map[string][]*object.Pod{},
		arrivals:  map[Arrival]int{},
		panics:    map[string]int{},
	}
	byArrival := func(a, b *entry) bool { return before(a.since, b.since, a.Sequence < b.Sequence) }
	q.heaps[Active].less = q.first
	q.heaps[Backoff].less = func(a, b *entry) bool { return before(a.expiry, b.expiry, q.first(a, b)) }
	q.heaps[ErrorBackoff].less = func(a, b *entry) bool { return before(a.expiry, b.expiry, a.Sequence < b.Sequence) }
	q.heaps[Unschedulable].less = byArrival
	q.heaps[Gated].less = byArrival
	return q
}

// first is the queue's total order: Less, then the order of arrival.
func (q *Queue) first(a, b *entry) bool {
	if q.opts.Less(&a.QueuedPodInfo, &b.QueuedPodInfo) {
		return true
	}
	return a.Sequence < b.Sequence && !q.opts.Less(&b.QueuedPodInfo, &a.QueuedPodInfo)
}

func before(a, b time.Time, tie bool) bool {
	if a.Equal(b) {
		return tie
	}
	return a.Before(b)
}

// Add takes in a pod that waits to be scheduled and returns where it is now:
// Active, or Gated. A pod that the queue has already is updated.
func (q *Queue) Add(now time.Time, p *object.Pod) Place {
	if q.pods[p.UID] != nil {
		return q.Update(now, p)
	}
	return q.add(now, p, Label(framework.UnscheduledPod, framework.Add))
}

func (q *Queue) add(now time.Time, p *object.Pod, event string) Place {
	e := &entry{index: -1}
	e.Pod = p
	q.stamp(now, e)
	q.pods[p.UID] = e
	if q.enqueue(now, e, Active, event) == Active {
		q.nominate(e, p.NominatedNode)
	}
	return e.place
}

// Update replaces the pod with a newer state of it and returns where it is
// now. An active pod or one in backoff stays; an unschedulable one is called
// if the change helps it; a gated one is looked at again; of one in flight the
// change is remembered. A pod that the queue does not have is added.
func (q *Queue) Update(now time.Time, p *object.Pod) Place {
	e := q.pods[p.UID]
	if e == nil {
		return q.add(now, p, Label(framework.UnscheduledPod, framework.UpdateOther))
	}
	old := e.Pod
	e.Pod = p
	q.renominate(e, old)
	changes := Changes(old, p)
	switch e.place {
	case InFlight:
		e.remember(old, changes)
	case Unschedulable:
		if how, action := q.askOwn(e, old, changes); how != sleep {
			q.wake(now, e, how, Label(framework.UnscheduledPod, action))
		}
	case Gated:
		q.wake(now, e, afterBackoff, Label(framework.UnscheduledPod, changes))
	default:
		q.heaps[e.place].fix(e)
	}
	return e.place
}

// Delete forgets the pod wherever it is, its nomination too. The outcome of an
// attempt still in flight is ignored when it comes. It tells whether the queue
// had the pod.
func (q *Queue) Delete(uid types.UID) bool {
	e := q.pods[uid]
	if e == nil {
		return false
	}
	q.nominate(e, "")
	q.leave(e)
	delete(q.pods, uid)
	return true
}

// Done ends the attempt of a pod in flight that needs no other: it is bound,
// or is not the queue's business any more. A pod elsewhere stays there. It
// tells whether the pod was in flight.
func (q *Queue) Done(uid types.UID) bool {
	if q.Where(uid) != InFlight {
		return false
	}
	return q.Delete(uid)
}

// Attempt is a pod handed out by Pop.
type Attempt struct {
	Pod *object.Pod
	// Number counts the pod's attempts, this one included.
	Number int
	// Queued is when the pod came to the queue or last came back to it from
	// an attempt; First when it was ready for the first time.
	Queued, First time.Time
	// Flushed: nothing had called the pod since its last attempt; its stay in
	// unschedulable was over.
	Flushed bool
}

// Ready tells whether Pop has a pod to hand out.
func (q *Queue) Ready() bool { return q.head() != nil }

// First is the pod that Pop would hand out, nil when there is none.
func (q *Queue) First() *object.Pod {
	if e := q.head(); e != nil {
		return e.Pod
	}
	return nil
}

func (q *Queue) head() *entry {
	if e := q.heaps[Active].head(); e != nil {
		return e
	}
	return q.heaps[Backoff].head()
}

// Pop hands out the next pod, which is in flight until Done, Park or Delete:
// the first of the active ones or, when there is none, the one whose backoff
// ends first, but for those in error backoff. It answers false when there is
// none.
func (q *Queue) Pop(now time.Time) (Attempt, bool) {
	e := q.head()
	if e == nil {
		return Attempt{}, false
	}
	if q.heaps[Active].head() == nil {
		q.arrivals[Arrival{"active", eventPopFromBackoff}]++
	}
	q.leave(e)
	e.attempts++
	e.rejectors, e.unknown = nil, nil
	e.changed, e.changes, e.activated = nil, 0, false
	e.popped = q.log.number
	q.enter(now, e, InFlight)
	return Attempt{Pod: e.Pod, Number: e.attempts, Queued: e.Timestamp, First: e.first, Flushed: e.flushed}, true
}

// Outcome says which plugins rejected a pod, in any order. Both empty: the
// attempt failed for another reason.
type Outcome struct {
	RejectedBy []string
	// PendingBy lists those that answered Pending: their call ends the pod's
	// backoff at once.
	PendingBy []string
}

// Park takes back a pod in flight that could not be placed, and returns where
// it is now: unschedulable, when nothing since its Pop may help it; else in
// backoff, active or gated. Nothing happens to a pod that is not in flight.
func (q *Queue) Park(now time.Time, uid types.UID, o Outcome) Place {
	e := q.pods[uid]
	if e == nil || e.place != InFlight {
		return q.Where(uid)
	}
	how := q.reject(e, o)
	q.stamp(now, e)
	e.flushed = false
	e.expiry = q.expiry(e)
	if how == sleep {
		q.put(now, e, Unschedulable, eventAttemptFailure)
	} else {
		q.wake(now, e, how, eventAttemptFailure)
	}
	return e.place
}

// reject notes who rejected the pod and tells whether it is to be tried again
// without further ado.
func (q *Queue) reject(e *entry, o Outcome) verdict {
	q.index.resolve(e, o)
	if len(e.unknown) > 0 || len(e.rejectors) == 0 {
		e.errors++
		return afterBackoff
	}
	e.rejections++
	e.errors = 0
	return q.replay(e)
}

// Activate makes the pods active now, backoff or not, as far as PreEnqueue
// lets them. One in flight is not parked when it comes back, but tried again
// after its backoff. Unknown pods are ignored.
func (q *Queue) Activate(now time.Time, uids ...types.UID) {
	for _, uid := range uids {
		e := q.pods[uid]
		if e == nil {
			continue
		}
		switch e.place {
		case Unschedulable, Gated:
			q.enqueue(now, e, Active, eventActivate)
		case Backoff, ErrorBackoff:
			q.put(now, e, Active, eventActivate)
		case InFlight:
			e.activated = true
		}
	}
}

// Retry has a parked pod tried again after an error backoff, because what it
// counted on failed; the wait grows with its rejections. A pod elsewhere
// stays where it is.
func (q *Queue) Retry(now time.Time, uid types.UID) {
	e := q.pods[uid]
	if e == nil || e.place != Unschedulable {
		return
	}
	e.errors = max(e.errors+1, e.rejections)
	e.expiry = q.expiry(e)
	q.wake(now, e, afterBackoff, eventAttemptFailure)
}

// Hurry tells that the pod's reason to wait is gone: it may be tried when there
// is nothing else to try. One that backs off after an error, or is elsewhere,
// stays where it is.
func (q *Queue) Hurry(now time.Time, uid types.UID) {
	if e := q.pods[uid]; e != nil && e.place == ErrorBackoff && e.errors == 0 {
		q.leave(e)
		q.enter(now, e, Backoff)
	}
}

// Flush does what is due by now: backoffs that are over and stays in
// unschedulable that took too long end, and pods that have been gated as long
// are looked at again.
func (q *Queue) Flush(now time.Time) {
	for _, place := range []Place{Backoff, ErrorBackoff} {
		for e := q.heaps[place].head(); e != nil && !q.backingOff(e, now); e = q.heaps[place].head() {
			q.put(now, e, Active, eventBackoffComplete)
		}
	}
	for _, place := range []Place{Unschedulable, Gated} {
		for e := q.heaps[place].head(); e != nil && !q.leftover(e).After(now); e = q.heaps[place].head() {
			q.wake(now, e, afterBackoff, eventUnschedulableTimeout)
			e.flushed = e.place != Gated
		}
	}
}

// NextTimer returns the earliest time at which Flush has something to do,
// which may have passed; false when there is none.
func (q *Queue) NextTimer() (time.Time, bool) {
	var next time.Time
	for place := range q.heaps {
		e := q.heaps[place].head()
		if e == nil || Place(place) == Active {
			continue
		}
		due := q.leftover(e)
		if Place(place) == Backoff || Place(place) == ErrorBackoff {
			due = e.expiry.Add(window)
		}
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return next, !next.IsZero()
}

// leftover is when the pod has been left alone for too long.
func (q *Queue) leftover(e *entry) time.Time { return e.since.Add(q.opts.MaxUnschedulable) }

// stamp gives the pod the place in the order of one that comes now.
func (q *Queue) stamp(now time.Time, e *entry) {
	q.sequence++
	e.Timestamp, e.Sequence = now, q.sequence
}

// wake moves the pod on to where it is to be tried again.
func (q *Queue) wake(now time.Time, e *entry, how verdict, event string) {
	to := Active
	switch {
	case how != afterBackoff || !q.backingOff(e, now):
	case e.errors > 0 || q.opts.Waits(e.Pod):
		to = ErrorBackoff
	default:
		to = Backoff
	}
	q.enqueue(now, e, to, event)
}

// enqueue puts the pod there if PreEnqueue lets it, else it is gated.
func (q *Queue) enqueue(now time.Time, e *entry, to Place, event string) Place {
	if e.gate = q.opts.PreEnqueue(e.Pod); e.gate != nil {
		to = Gated
	}
	q.put(now, e, to, event)
	return to
}

// put moves the pod to a place and counts its arrival there.
func (q *Queue) put(now time.Time, e *entry, to Place, event string) {
	from := e.place
	q.leave(e)
	q.enter(now, e, to)
	if from != to {
		q.arrivals[Arrival{to.metric(), event}]++
	}
}

// enter puts the pod, which is nowhere, into the place.
func (q *Queue) enter(now time.Time, e *entry, to Place) {
	e.place, e.since = to, now
	switch to {
	case InFlight:
		q.inFlight++
		return
	case Active:
		if e.first.IsZero() {
			e.first = now
		}
	case Unschedulable:
		q.index.add(e, e.rejectors...)
	case Gated:
		if g := q.index.group(e.Pod.SchedulerName, e.gate.Plugin); g != nil {
			q.index.add(e, rejector{group: g})
		}
	}
	q.heaps[to].push(e)
}

// leave takes the pod out of its place.
func (q *Queue) leave(e *entry) {
	switch e.place {
	case Nowhere:
		return
	case InFlight:
		if q.inFlight--; q.inFlight == 0 {
			q.log.clear()
		}
	default:
		q.heaps[e.place].remove(e)
		q.index.remove(e)
	}
	e.place = Nowhere
}

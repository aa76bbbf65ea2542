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

// Options configures a queue. The functions may not call the queue.
type Options struct {
	// InitialBackoff is the wait after the first failure. It doubles with each
	// further one, up to MaxBackoff. MaxBackoff 0 means no backoff at all.
	InitialBackoff, MaxBackoff time.Duration
	// MaxUnschedulable is how long a pod stays unschedulable, or gated without another
	// PreEnqueue, when no event moves it. Less than a second counts as a second.
	MaxUnschedulable time.Duration

	// Less is the QueueSort plugin's order, ties allowed. nil: pods leave in the order in
	// which they were added.
	Less func(a, b *framework.QueuedPodInfo) bool
	// PreEnqueue runs the PreEnqueue plugins of the pod's profile in order and
	// returns the first status that is not a success, nil when there is none.
	// Events of its Plugin call the pod back. It may not panic. nil: there are
	// no such plugins.
	PreEnqueue func(p *object.Pod) *decision.Status
	// WaitOutBackoff leaves pods in backoff until it is over, even when there is
	// nothing else to try, as kube-scheduler does without the gate SchedulerPopFromBackoffQ.
	// Backoff ends to the nanosecond then.
	WaitOutBackoff bool
	// HoldInBackoff reports whether a pod that an event moves must wait until its backoff
	// is over, even if nothing else is to be tried. nil: no pod must.
	HoldInBackoff func(p *object.Pod) bool
	// PodGroup returns the PodGroup of this name, nil if there is none. It is called for
	// pods that name one: the pods of a group wait and are tried together. A nil function
	// means that each pod waits by itself.
	PodGroup func(name types.NamespacedName) *object.PodGroup
	// HalfBound reports whether the group of this name is a gang of which a part is bound that is
	// smaller than its minimum (QueuedPodInfo.HalfBound). Call UpdateHalfBound when its answer may
	// have changed. nil: no group is.
	HalfBound func(name types.NamespacedName) bool
	// EventsToRegister returns the events that may help pods which the plugin of
	// the profile rejected, the profile being a pod's SchedulerName. The answer
	// may not change. Pods rejected by a plugin that is not known are backed off
	// as after an error.
	EventsToRegister func(profile, plugin string) (events []framework.ClusterEventWithHint, known bool)
	// Foresight knows which events cannot help a rejected pod, though a queueing hint
	// says that they may. nil: the hints alone decide.
	Foresight Foresight
	// HintPanicked is called for a plugin whose queueing hint panicked, with the value of
	// the panic, on the stack of the panic. nil: nothing is called.
	HintPanicked func(plugin string, value any)
}

// Queue is the scheduling queue: it holds all pods that wait or are being tried. Its owner
// is core/machine; it is not safe for concurrent use.
type Queue struct {
	opts     Options
	heaps    [places]heap // by place; those of InFlight and Nowhere stay empty
	inFlight set
	events   inFlightEvents // kept while a pod is in flight
	plugins  pluginIndex
	hints    hints
	backoffs backoffs
	sequence uint64 // number of the last arrival
	groups   groups
	nominations
	listeners listeners

	arrivals map[Arrival]int // counts for the metric
	keyBuf   []byte          // scratch of classOf
	illegal  error           // the first move that was not in Moves
}

// New returns an empty queue. Options that are not set get defaults that do nothing;
// negative backoffs count as 0.
func New(o Options) *Queue {
	o.InitialBackoff = max(o.InitialBackoff, 0)
	o.MaxBackoff = max(o.MaxBackoff, 0)
	o.MaxUnschedulable = max(o.MaxUnschedulable, time.Second)
	if o.Less == nil {
		o.Less = func(a, b *framework.QueuedPodInfo) bool { return false }
	}
	if o.Foresight == nil {
		o.Foresight = hintsAlone{}
	}
	if o.PreEnqueue == nil {
		o.PreEnqueue = func(*object.Pod) *decision.Status { return nil }
	}
	if o.HoldInBackoff == nil {
		o.HoldInBackoff = func(*object.Pod) bool { return false }
	}
	if o.HalfBound == nil {
		o.HalfBound = func(types.NamespacedName) bool { return false }
	}
	if o.HintPanicked == nil {
		o.HintPanicked = func(string, any) {}
	}
	if o.EventsToRegister == nil {
		o.EventsToRegister = func(string, string) ([]framework.ClusterEventWithHint, bool) { return nil, false }
	}
	q := &Queue{
		opts:        o,
		plugins:     newPluginIndex(o.EventsToRegister),
		nominations: nominations{nominated: map[string][]*object.Pod{}},
		arrivals:    map[Arrival]int{},
		groups:      groups{},
	}
	q.hints = hints{opts: &q.opts, panics: map[string]int{}}
	q.backoffs = backoffs{opts: &q.opts}
	byArrival := func(a, b *Entry) bool { return before(a.since, b.since, a.Sequence < b.Sequence) }
	q.heaps[Active].less = q.less
	q.heaps[Backoff].less = func(a, b *Entry) bool { return before(a.backoffEnd, b.backoffEnd, q.less(a, b)) }
	q.heaps[ErrorBackoff].less = func(a, b *Entry) bool { return before(a.backoffEnd, b.backoffEnd, arrivedBefore(a, b)) }
	q.heaps[Unschedulable].less = byArrival
	q.heaps[Gated].less = byArrival
	return q
}

// less is the queue's total order: QueueSort, then the order of arrival. A pod that waits with its
// group comes where the group does, and pods of one group in the order of their arrival.
func (q *Queue) less(a, b *Entry) bool {
	switch {
	case a.turn == b.turn:
		return a.Sequence < b.Sequence
	case q.opts.Less(a.order, b.order):
		return true
	}
	return a.order.Sequence < b.order.Sequence && !q.opts.Less(b.order, a.order)
}

// arrivedBefore reports whether a, or its group, arrived before b.
func arrivedBefore(a, b *Entry) bool {
	if a.turn == b.turn {
		return a.Sequence < b.Sequence
	}
	return a.order.Sequence < b.order.Sequence
}

// before reports whether the time a is before b, and returns tie if they are equal.
func before(a, b time.Time, tie bool) bool {
	if a.Equal(b) {
		return tie
	}
	return a.Before(b)
}

// Add adds a pod that waits to be scheduled and that the queue does not hold. The pod is
// nominated to its status.nominatedNodeName and becomes active, or is gated if a PreEnqueue
// plugin rejects it. The caller keeps the entry, by which the other methods know the pod.
func (q *Queue) Add(now time.Time, p *object.Pod) *Entry {
	e := newEntry(p)
	q.stamp(now, e)
	q.Nominate(e, p.NominatedNode)
	q.insert(now, e, Label(framework.UnscheduledPod, framework.Add))
	return e
}

// insert makes a pod that is nowhere or in flight wait: with its group, or active, unless
// PreEnqueue gates it.
func (q *Queue) insert(now time.Time, e *Entry, event string) {
	if q.opts.hasGroup(e.Pod) {
		q.join(now, e, event)
	} else {
		q.enqueue(now, e, Active, event, "")
	}
}

// Update replaces the pod by a newer state. An active pod or one in backoff stays in its
// place. An unschedulable pod moves if the change may help it; a gated pod runs PreEnqueue
// again; for a pod in flight the change is recorded. What only the scheduler wrote moves no
// pod. A pod that names another group than before waits with that one.
func (q *Queue) Update(now time.Time, e *Entry, p *object.Pod) {
	if q.opts.PodGroup != nil && e.place != InFlight && e.Pod.PodGroup() != p.PodGroup() {
		q.changeGroup(now, e, p)
		return
	}
	old := e.Pod
	e.Pod = p
	q.updateNomination(e, old)
	q.reindex(e)
	q.updateOrder(e, old)
	changes := Changes(old, p)
	switch e.place {
	case InFlight:
		e.recordChange(old, changes)
	case Unschedulable:
		if how, action := q.hints.strategyAfterUpdate(e, old, changes); how != skip {
			q.moveToActiveOrBackoff(now, e, how, Label(framework.TargetPod, action))
		}
	case Gated:
		if changes != 0 {
			q.moveToActiveOrBackoff(now, e, afterBackoff, Label(framework.TargetPod, changes))
		}
	default:
		q.heaps[e.place].fix(e)
	}
}

// Delete removes the pod, wherever it is, and its nomination. The entry may not be used
// again.
func (q *Queue) Delete(now time.Time, e *Entry) {
	q.Nominate(e, "")
	q.remove(now, e, eventDelete)
}

// remove removes the pod from its place and its group because of the event. The group may be tried
// again or become gated without it.
func (q *Queue) remove(now time.Time, e *Entry, event string) {
	from, g := e.place, e.group
	e.leaveGroup()
	q.move(time.Time{}, e, Nowhere, event)
	if g != nil {
		q.memberLeft(now, g, e, from)
	}
}

// Ready reports whether Pop would return a pod now.
func (q *Queue) Ready() bool { return q.head() != nil }

// First returns the pod that Pop would return, without popping it; nil if there is none.
func (q *Queue) First() *object.Pod {
	if e := q.head(); e != nil {
		return e.Pod
	}
	return nil
}

// head returns the entry that Pop would return, nil if there is none.
func (q *Queue) head() *Entry {
	if e := q.heaps[Active].head(); e != nil || q.opts.WaitOutBackoff {
		return e
	}
	return q.heaps[Backoff].head()
}

// Pop returns the next pod, which is in flight until Requeue or Delete, and counts an
// attempt. All pods that wait with it as a group are popped too: see Entry.Group. The next
// pod is the first active one; if there is none, the one in backoff (not error backoff) whose
// backoff ends first, unless WaitOutBackoff is set. It returns nil if there is none.
func (q *Queue) Pop(now time.Time) *Entry {
	e := q.head()
	if e == nil {
		return nil
	}
	if e.group != nil {
		return q.popGroup(now, e.group)
	}
	q.handOut(now, e)
	return e
}

// handOut moves an active pod, or one in backoff, to in flight and counts the attempt. It
// forgets what rejected the pod before.
func (q *Queue) handOut(now time.Time, e *Entry) {
	if e.place == Backoff {
		q.arrivals[Arrival{Queue: "active", Event: eventPopFromBackoff, Of: e.arrives()}]++
	}
	e.Tries++
	e.changed, e.changes, e.activated = nil, 0, false
	e.popped, e.calls = q.events.number, q.events.calls
	q.move(now, e, InFlight, eventPopped)
	e.rejectors, e.unknown = nil, nil
}

// Requeue puts back a pod in flight that could not be placed. rejectedBy and pendingBy are the
// plugins that rejected it, in any order; for those in pendingBy (status Pending) an event that
// helps moves the pod at once, without backoff. Without any plugin, or with one that is not known,
// the attempt counts as an error. The pod becomes unschedulable if no event since its Pop may help
// it; otherwise it goes to backoff, active or gated. A pod that is not in flight stays as it is. A
// pod that was popped with its group stays in flight until EndGroup; one that comes back later
// joins its group where that waits.
func (q *Queue) Requeue(now time.Time, e *Entry, rejectedBy, pendingBy []string) {
	if e.place != InFlight {
		return
	}
	if e.group != nil {
		q.plugins.resolve(e, rejectedBy, pendingBy)
		q.stamp(now, e)
		e.flushed, e.returned = false, true
		return
	}
	how := q.recordRejection(e, rejectedBy, pendingBy)
	q.stamp(now, e)
	e.flushed = false
	e.backoffEnd = q.backoffs.backoffEnd(e)
	if q.opts.hasGroup(e.Pod) {
		q.join(now, e, eventAttemptFailure)
		return
	}
	if how == skip {
		q.put(now, e, Unschedulable, eventAttemptFailure, skip.queue())
	} else {
		q.moveToActiveOrBackoff(now, e, how, eventAttemptFailure)
	}
}

// recordRejection records the plugins that rejected the pod, and counts a rejection; an
// error instead if there are none or one is not known. It returns where the pod goes; skip
// means unschedulable.
func (q *Queue) recordRejection(e *Entry, rejectedBy, pendingBy []string) strategy {
	q.plugins.resolve(e, rejectedBy, pendingBy)
	if len(e.unknown) > 0 || len(e.rejectors) == 0 {
		e.errors++
		return afterBackoff
	}
	e.rejections++
	e.errors = 0
	return q.strategySincePop(e)
}

// Activate makes the pods active now, whatever their backoff, unless PreEnqueue gates them. A pod
// in flight goes to backoff or active when it comes back, instead of becoming unschedulable. Active
// pods stay.
func (q *Queue) Activate(now time.Time, entries ...*Entry) {
	for _, e := range entries {
		switch e.place {
		case Unschedulable, Gated:
			q.enqueue(now, e, Active, eventActivate, "")
		case Backoff, ErrorBackoff:
			q.endBackoff(now, e, eventActivate)
		case InFlight:
			e.activated = true
		}
	}
}

// RetryAfterError moves an unschedulable pod to error backoff because something that it waited for
// failed, such as the eviction of a victim; the wait grows with its rejections and errors. It does
// nothing for a pod elsewhere.
func (q *Queue) RetryAfterError(now time.Time, e *Entry) {
	if e.place != Unschedulable {
		return
	}
	e.errors = max(e.errors+1, e.rejections)
	e.backoffEnd = q.backoffs.backoffEnd(e)
	q.moveToActiveOrBackoff(now, e, afterBackoff, eventAttemptFailure)
}

// SkipBackoff moves a pod that HoldInBackoff held in error backoff to backoff, with its group, so
// that it is tried before its backoff is over if nothing is active: a preemptor whose victims are
// gone. It does nothing for a pod that failed with an error, or is elsewhere.
func (q *Queue) SkipBackoff(now time.Time, e *Entry) {
	if e.place != ErrorBackoff || e.errors != 0 {
		return
	}
	for member := range e.members() {
		q.move(now, member, Backoff, eventSkipBackoff)
	}
}

// Flush moves the pods whose backoff is over to active, and those that were unschedulable
// for MaxUnschedulable to active or backoff. Pods that were gated for as long run
// PreEnqueue again.
func (q *Queue) Flush(now time.Time) {
	for _, place := range []Place{Backoff, ErrorBackoff} {
		for e := q.heaps[place].head(); e != nil && !q.backoffs.backingOff(e, now); e = q.heaps[place].head() {
			q.endBackoff(now, e, eventBackoffComplete)
		}
	}
	for _, place := range []Place{Unschedulable, Gated} {
		for e := q.heaps[place].head(); e != nil && !q.opts.stayEnd(e).After(now); e = q.heaps[place].head() {
			q.moveToActiveOrBackoff(now, e, afterBackoff, eventUnschedulableTimeout)
			for member := range e.members() {
				member.flushed = e.place != Gated
			}
		}
	}
}

// NextTimer returns the earliest time at which Flush has something to do, which may have
// passed; false if no pod waits for a time.
func (q *Queue) NextTimer() (time.Time, bool) {
	var next time.Time
	for _, place := range []Place{Backoff, ErrorBackoff, Unschedulable, Gated} {
		e := q.heaps[place].head()
		if e == nil {
			continue
		}
		due := q.opts.stayEnd(e)
		if place == Backoff || place == ErrorBackoff {
			due = e.backoffEnd.Add(q.backoffs.grain())
		}
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return next, !next.IsZero()
}

// stayEnd returns when Flush moves an unschedulable or gated pod.
func (o *Options) stayEnd(e *Entry) time.Time { return e.since.Add(o.MaxUnschedulable) }

// stamp records that the pod arrives now: it sets Timestamp, from which backoffs count,
// and gives the pod the next Sequence number, which orders pods that QueueSort leaves
// equal.
func (q *Queue) stamp(now time.Time, e *Entry) {
	q.sequence++
	e.Timestamp, e.Sequence = now, q.sequence
}

// moveToActiveOrBackoff runs PreEnqueue and moves the pod, with its group, to active, or to gated
// if a plugin rejects it. If how is afterBackoff and the backoff is not over, it goes to backoff
// instead, or to error backoff after an error or if Options.HoldInBackoff holds it.
func (q *Queue) moveToActiveOrBackoff(now time.Time, e *Entry, how strategy, event string) {
	to := Active
	switch {
	case how != afterBackoff || !q.backoffs.backingOff(e, now):
	case e.errors > 0 || q.opts.HoldInBackoff(e.Pod):
		to = ErrorBackoff
	default:
		to = Backoff
	}
	q.enqueue(now, e, to, event, how.queue())
}

// endBackoff makes a pod in backoff active, with its group. As in kube-scheduler it runs PreEnqueue
// again if WaitOutBackoff is set.
func (q *Queue) endBackoff(now time.Time, e *Entry, event string) {
	if q.opts.WaitOutBackoff {
		q.enqueue(now, e, Active, event, "")
	} else {
		q.put(now, e, Active, event, "")
	}
}

// enqueue runs PreEnqueue and moves the pod to the place to, or to gated if a plugin rejects it.
// hinted is the queue that queueing hints name, or "". A group moves as a whole.
func (q *Queue) enqueue(now time.Time, e *Entry, to Place, event, hinted string) {
	if e.group != nil {
		q.enqueueGroup(now, e, to, event, hinted)
		return
	}
	if e.preEnqueueStatus = q.opts.PreEnqueue(e.Pod); e.preEnqueueStatus != nil {
		to = Gated
	}
	q.put(now, e, to, event, hinted)
}

// put moves the pod to a place because of the event, and counts an arrival if it is another place
// than before. hinted is the queue that the strategy names; "" if hints were not asked. A group
// moves as a whole.
func (q *Queue) put(now time.Time, e *Entry, to Place, event, hinted string) {
	if e.group != nil {
		q.moveGroup(now, e.group, to, event, hinted)
		return
	}
	q.putAlone(now, e, to, event, hinted)
}

// putAlone moves the pod to a place because of the event, and counts an arrival if it is another
// place than before. Other pods of its group stay. hinted is the queue that the strategy names; ""
// if hints were not asked.
func (q *Queue) putAlone(now time.Time, e *Entry, to Place, event, hinted string) {
	if from, queue := e.place, to.metric(); from != to {
		q.arrivals[Arrival{queue, event, queue == hinted, e.arrives()}]++
	}
	q.move(now, e, to, event)
}

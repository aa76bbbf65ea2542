package queue

import (
	"fmt"
	"iter"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// Entry is one pod with what the queue knows of it, from Add until Delete. The caller that
// adds a pod keeps its entry and passes it to the queue, which does not look pods up. A nil
// Entry is a pod that the queue does not have.
type Entry struct {
	framework.QueuedPodInfo
	// Owner is the caller's own record of the pod, to be found at the Pop. The queue does
	// not read it.
	Owner any
	place Place
	index int // in the heap or set of its place; nowhere if in none
	// since is when the pod was put into its place, or put there again.
	since time.Time

	*turn        // &own, or that of the group with which the pod waits
	own   turn   // the turn of a pod without a group
	group *group // with which the pod waits or is tried; nil: none

	flushed  bool // it left unschedulable because its time was over, and was not rejected since
	returned bool // the pod came back from the attempt of its group, which has not ended

	rejectors        []rejector       // plugins that rejected it in the last attempt, sorted
	unknown          []string         // rejectors that the profile does not have, sorted
	preEnqueueStatus *decision.Status // why it is gated; nil: it is not
	// peers are the equal pods with which this one is listed under plugins, at index
	// peerIndex; nil if it is not listed.
	peers     *peers
	peerIndex int

	// Of a pod in flight: the number of the last event at its Pop, the pod as it was then
	// if it was updated since, with the changes, and whether Activate was called.
	popped    uint64
	calls     uint64 // number of calls of MoveInNamespaces at its Pop
	changed   *object.Pod
	changes   framework.ActionType
	activated bool

	nominated string // the node to which the pod is nominated, "" for none
}

// Place returns where in the queue the pod is; Nowhere if e is nil.
func (e *Entry) Place() Place {
	if e == nil {
		return Nowhere
	}
	return e.place
}

// NominatedNode returns the node that the pod is nominated to, "" for none or if e is nil.
func (e *Entry) NominatedNode() string {
	if e == nil {
		return ""
	}
	return e.nominated
}

// Attempts returns the number of the pod's scheduling attempts; the one in flight is
// included.
func (e *Entry) Attempts() int { return e.Tries }

// RejectedBy returns the plugins that rejected the pod in its last attempt; the bool is true for
// those that answered Pending. It returns none from Pop until the pod comes back.
func (e *Entry) RejectedBy() iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		for _, r := range e.rejectors {
			if !yield(r.plugin.name, r.pending) {
				return
			}
		}
		for _, name := range e.unknown {
			if !yield(name, false) {
				return
			}
		}
	}
}

// newEntry returns an entry of the pod that is nowhere.
func newEntry(p *object.Pod) *Entry {
	e := &Entry{index: nowhere}
	e.Pod = p
	e.own.order, e.turn = &e.QueuedPodInfo, &e.own
	return e
}

// turn decides when a pod is tried next, or the pods of a group together.
type turn struct {
	order      *framework.QueuedPodInfo // what QueueSort compares, and the number of the arrival
	rejections int                      // attempts that ended in a rejection
	errors     int                      // attempts that ended in an error since the last rejection
	// backoffEnd is the start of the window in which the backoff ends, zero for no backoff.
	backoffEnd time.Time
}

// Flushed reports whether the pod left unschedulable only because its time there was over,
// not for an event, and was not rejected since.
func (e *Entry) Flushed() bool { return e.flushed }

// recordChange records an update of the pod in flight from old, which differs by changes. Several
// updates become one: from the pod that was popped to the newest.
func (e *Entry) recordChange(old *object.Pod, changes framework.ActionType) {
	if e.changed == nil {
		e.changed = old
	}
	e.changes |= changes
}

// Place is where in the queue a pod is.
type Place uint8

const (
	// Nowhere is the place of a pod that the queue does not hold.
	Nowhere Place = iota
	// Active: ready to be tried.
	Active
	// Backoff: rejected; to be tried again when its backoff is over, or when
	// nothing is active.
	Backoff
	// ErrorBackoff: the attempt failed without a verdict on the pod, or the pod
	// is held in backoff; to be tried again when its backoff is over.
	ErrorBackoff
	// Unschedulable: rejected; waits for an event that may help.
	Unschedulable
	// Gated: a PreEnqueue plugin rejects it.
	Gated
	// InFlight: handed out by Pop, outcome not known yet.
	InFlight

	places = int(InFlight) + 1
)

// String returns the place's name, as users read it.
func (p Place) String() string {
	return [places]string{"nowhere", "active", "backoff", "error backoff", "unschedulable", "gated", "in flight"}[p]
}

// metric returns the queue of the place in queue_incoming_pods_total: kube-scheduler has fewer.
func (p Place) metric() string {
	switch p {
	case ErrorBackoff:
		return "backoff"
	case Gated:
		return "unschedulable"
	}
	return p.String()
}

// Moves are the legal moves of a pod from place (first index) to place, each with what
// causes it. A move without a cause is illegal; Check reports it.
var Moves = [places][places]string{
	Nowhere: {
		Active:       "Add",
		Backoff:      "Add, and the pods of its group are in backoff",
		ErrorBackoff: "Add, and the pods of its group are in error backoff",
		Gated:        "Add, and a PreEnqueue plugin rejects the pod, or one of its group",
	},
	Active: {
		InFlight: "Pop",
		Gated:    "Reconfigure, or a change of its group, and a PreEnqueue plugin rejects a pod",
		Nowhere:  "Delete",
	},
	Backoff: {
		Active:   "the backoff is over, or Activate",
		InFlight: "Pop, when nothing is active",
		Gated:    "Reconfigure, a change of its group, or backoff is waited out, and a PreEnqueue plugin rejects a pod",
		Nowhere:  "Delete",
	},
	ErrorBackoff: {
		Active:  "the backoff is over, or Activate",
		Backoff: "SkipBackoff",
		Gated:   "Reconfigure, a change of its group, or backoff is waited out, and a PreEnqueue plugin rejects a pod",
		Nowhere: "Delete",
	},
	Unschedulable: {
		Active:       "an event may help, 5 minutes have passed, or Activate",
		Backoff:      "an event may help, and the backoff is not over",
		ErrorBackoff: "RetryAfterError, or an event may help and the pod is held",
		Gated:        "a PreEnqueue plugin rejects the pod",
		Nowhere:      "Delete",
	},
	Gated: {
		Active:       "PreEnqueue plugins admit the pod",
		Backoff:      "PreEnqueue plugins admit the pod, and its backoff is not over",
		ErrorBackoff: "PreEnqueue plugins admit the pod, and it is held",
		Gated:        "a PreEnqueue plugin rejects the pod again",
		Nowhere:      "Delete",
	},
	InFlight: {
		Active:        "Requeue, and an event in between may help at once",
		Backoff:       "Requeue, and an event in between may help",
		ErrorBackoff:  "Requeue after an error",
		Unschedulable: "Requeue after a rejection",
		Gated:         "Requeue, and a PreEnqueue plugin rejects the pod",
		Nowhere:       "Delete",
	},
}

// move moves the pod to another place because of an event, and tells the listeners. Nothing
// else changes a place, except that Restore puts pods of a snapshot into theirs. An illegal
// move is recorded for Check.
func (q *Queue) move(now time.Time, e *Entry, to Place, event string) {
	from := e.place
	if Moves[from][to] == "" && q.illegal == nil {
		q.illegal = fmt.Errorf("pod %s moved from %s to %s, which is not a legal move", e.Pod.UID, from, to)
	}
	q.leave(e)
	e.place, e.since = to, now
	q.enter(now, e)
	q.listeners.tellMoved(e, from, event)
}

// leave removes the pod from the heap or set of its place and from the lists of the
// plugins that it waits for. It is the first half of move.
func (q *Queue) leave(e *Entry) {
	switch from := e.place; from {
	case Nowhere:
	case InFlight:
		q.inFlight.remove(e)
		if q.inFlight.len() == 0 {
			q.events.clear()
		}
	default:
		q.heaps[from].remove(e)
		q.plugins.remove(e)
	}
}

// enter adds the pod to the heap or set of its new place and to the lists of the plugins that it
// waits for. It sets FirstActive when the pod is active for the first time. It is the second half
// of move.
func (q *Queue) enter(now time.Time, e *Entry) {
	switch e.place {
	case Nowhere:
		return
	case InFlight:
		q.inFlight.add(e)
		return
	case Active:
		if e.FirstActive.IsZero() {
			e.FirstActive = now
		}
	}
	q.index(e)
	q.heaps[e.place].push(e)
}

// index lists an unschedulable or gated pod under the plugins that rejected or gated it,
// so that events that these registered for find it. A gated group is listed by the pod that
// gates it. It does nothing for other pods.
func (q *Queue) index(e *Entry) {
	switch e.place {
	case Unschedulable:
		q.plugins.add(e, q.classOf(e), e.rejectors...)
	case Gated:
		if e.group != nil && e.group.gate != e {
			return
		}
		if p := q.plugins.find(e.Pod.SchedulerName, e.preEnqueueStatus.Plugin); p != nil {
			q.plugins.add(e, Class{}, rejector{plugin: p})
		}
	}
}

// reindex lists an unschedulable or gated pod again under the plugins that rejected it,
// after the pod or its nomination changed: it may have other peers, and name other
// objects.
func (q *Queue) reindex(e *Entry) {
	q.plugins.remove(e)
	q.index(e)
}

// set holds entries in no order; each knows its index in it.
type set []*Entry

// len returns the number of entries.
func (s set) len() int { return len(s) }

// add adds an entry that is in no heap or set.
func (s *set) add(e *Entry) {
	e.index = len(*s)
	*s = append(*s, e)
}

// remove removes an entry of this set.
func (s *set) remove(e *Entry) {
	last := len(*s) - 1
	moved := (*s)[last]
	(*s)[e.index], moved.index = moved, e.index
	(*s)[last] = nil
	*s = (*s)[:last]
	e.index = nowhere
}

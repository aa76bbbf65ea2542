package queue

import (
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// Place is where in the queue a pod is.
type Place uint8

const (
	// Nowhere: the queue does not have the pod.
	Nowhere Place = iota
	// Active: ready to be tried.
	Active
	// Backoff: rejected; to be tried again when its backoff is over, or when
	// nothing is active.
	Backoff
	// ErrorBackoff: the attempt failed without a verdict on the pod, or the pod
	// has a reason to wait; to be tried again when its backoff is over.
	ErrorBackoff
	// Unschedulable: rejected; waits for a change that may help.
	Unschedulable
	// Gated: a PreEnqueue plugin keeps it out.
	Gated
	// InFlight: handed out by Pop, outcome not known yet.
	InFlight

	places = int(InFlight) + 1
)

// String is the place's name in words of the API.
func (p Place) String() string {
	return [places]string{"nowhere", "active", "backoff", "error backoff", "unschedulable", "gated", "in flight"}[p]
}

// metric is the place's name in queue_incoming_pods_total.
func (p Place) metric() string {
	switch p {
	case ErrorBackoff:
		return "backoff"
	case Gated:
		return "unschedulable"
	}
	return p.String()
}

// entry is one pod and what the queue knows of it. It is in the heap of its
// place, unless it is in flight.
type entry struct {
	framework.QueuedPodInfo
	place Place
	index int // in the heap of its place, -1 in none
	// since is when the pod came to its place, or was last looked at there.
	since time.Time
	first time.Time // first time active, zero before

	attempts   int
	rejections int // attempts that ended in a rejection
	errors     int // attempts that ended in an error since the last rejection
	// expiry is the window in which the backoff ends, zero for no backoff.
	expiry  time.Time
	flushed bool

	rejectors []rejector // of the last attempt, by plugin
	unknown   []string   // rejectors without wake rules, sorted
	gate      *decision.Status
	slots     []slot  // where the index has the pod
	called    verdict // during a move: what its rejectors answered so far

	// In flight: the log's number at the Pop, the pod as it was then if it
	// changed since and in what, and whether it was activated.
	popped    uint64
	changed   *object.Pod
	changes   framework.ActionType
	activated bool

	nominated string // node, "" for none
}

// remember notes a change of the pod in flight. However many there are, they
// make one: from the pod that was popped to the newest.
func (e *entry) remember(old *object.Pod, changes framework.ActionType) {
	if e.changed == nil {
		e.changed = old
	}
	e.changes |= changes
}

package queue

import (
	"iter"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// Entry is one pod and what the queue knows of it, from Add to Delete or Done.
// The caller that adds a pod keeps its entry and hands it back to the queue. The queue
// does not look pods up. A nil Entry is a pod that the queue does not have.
type Entry struct {
	framework.QueuedPodInfo
	// Owner is for who adds the pod, to have its own record of it at the Pop. The
	// queue does not look at it.
	Owner any
	place Place
	index int // in the heap or set of its place, nowhere in none
	// since is when the pod came to its place, or was last looked at there.
	since time.Time

	rejections int // attempts that ended in a rejection
	errors     int // attempts that ended in an error since the last rejection
	// backoffEnd is the window in which the backoff ends, zero for no backoff.
	backoffEnd time.Time
	flushed    bool

	rejectors        []rejector // of the last attempt, by plugin
	unknown          []string   // rejectors that the profile does not have, sorted
	preEnqueueStatus *decision.Status
	// peers are the pods with which this one is listed under plugins, at index peerIndex;
	// nil if it is not listed.
	peers     *peers
	peerIndex int

	// In flight: the number of the last event at the Pop, the pod as it was
	// then if it changed since and in what, and whether it was activated.
	popped    uint64
	changed   *object.Pod
	changes   framework.ActionType
	activated bool

	nominated string // node, "" for none
}

// Place returns where in the queue the pod is.
func (e *Entry) Place() Place {
	if e == nil {
		return Nowhere
	}
	return e.place
}

// NominatedNode returns the node that the pod is nominated to, "" for none.
func (e *Entry) NominatedNode() string {
	if e == nil {
		return ""
	}
	return e.nominated
}

// Attempts counts the pod's attempts; the one in flight is included.
func (e *Entry) Attempts() int { return e.Tries }

// RejectedBy iterates over the plugins that rejected the pod in its last attempt; the
// bool is true for those that answered Pending.
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

// Flushed reports whether the pod left unschedulable because its time there was over,
// without an event, since its last attempt.
func (e *Entry) Flushed() bool { return e.flushed }

// recordChange records a change of the pod in flight. All changes become one: from the
// pod that was popped to the newest.
func (e *Entry) recordChange(old *object.Pod, changes framework.ActionType) {
	if e.changed == nil {
		e.changed = old
	}
	e.changes |= changes
}

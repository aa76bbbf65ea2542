package queue

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
)

// Counts is the number of pods in each place of the queue.
type Counts struct {
	Active, Backoff, ErrorBackoff, Unschedulable, Gated, InFlight int
}

// Counts returns the number of pods in each place. The metric pending_pods adds Backoff and
// ErrorBackoff up.
func (q *Queue) Counts() Counts {
	return Counts{
		Active:        q.heaps[Active].len(),
		Backoff:       q.heaps[Backoff].len(),
		ErrorBackoff:  q.heaps[ErrorBackoff].len(),
		Unschedulable: q.heaps[Unschedulable].len(),
		Gated:         q.heaps[Gated].len(),
		InFlight:      q.inFlight.len(),
	}
}

// Arrival is the label of a count of pods, or groups, that arrived in a queue because of an
// event, both named as in kube-scheduler's metric queue_incoming_pods_total.
type Arrival struct {
	Queue, Event string
	// Hinted is set if queueing hints named Queue, or if the outcome of the attempt did where no
	// hint was asked. kube-scheduler does not count these in queue_incoming_entities_total.
	Hinted bool
	Of     Arriving // what arrived
}

// Arriving is what an arrival counts.
type Arriving uint8

const (
	PodAlone   Arriving = iota // a pod that is scheduled by itself
	PodOfGroup                 // a pod that is scheduled with its group
	WholeGroup                 // a group: its pods count as well
)

// arrives returns what the arrival of the entry counts.
func (e *Entry) arrives() Arriving {
	if e.group != nil {
		return PodOfGroup
	}
	return PodAlone
}

// Arrivals returns how many pods and groups have arrived in each queue for each event since the
// start, for the metrics queue_incoming_pods_total and queue_incoming_entities_total. The
// caller owns the map.
func (q *Queue) Arrivals() map[Arrival]int { return maps.Clone(q.arrivals) }

// WaitingGroup describes a pod group of which pods wait.
type WaitingGroup struct {
	Place Place
	Pods  int // number of pods that wait
	// Plugin gates the group, or, if it is not gated, is the first that rejected one of its pods in
	// its last attempt; "" for none.
	Plugin string
	// Since is when the first of these pods was active for the first time, wherever the group
	// has waited from then on; zero if none was.
	Since time.Time
}

// WaitingGroups returns the pod groups of which pods wait, in no order.
func (q *Queue) WaitingGroups() (all []WaitingGroup) {
	for _, g := range q.groups { // any order: the result has none
		if len(g.waiting) > 0 {
			all = append(all, WaitingGroup{g.waiting[0].place, len(g.waiting), g.heldBy(), g.activeSince()})
		}
	}
	return all
}

// heldBy returns the plugin that gates the group. If the group is not gated, it is the first plugin
// that rejected one of its waiting pods in the last attempt; "" if there is none.
func (g *group) heldBy() string {
	if g.gate != nil {
		return g.gate.preEnqueueStatus.Plugin
	}
	for _, e := range g.waiting {
		for plugin := range e.RejectedBy() {
			return plugin
		}
	}
	return ""
}

// activeSince returns when the first of the group's waiting pods was active for the first time;
// zero if none was.
func (g *group) activeSince() (since time.Time) {
	for _, e := range g.waiting {
		if at := e.FirstActive; !at.IsZero() && (since.IsZero() || at.Before(since)) {
			since = at
		}
	}
	return since
}

// Panics returns how often queueing hints have panicked since the start, by plugin. The
// caller owns the map.
func (q *Queue) Panics() map[string]int { return maps.Clone(q.hints.panics) }

// InFlight returns the entries of pods in flight, in no order.
func (q *Queue) InFlight() iter.Seq[*Entry] { return slices.Values(q.inFlight) }

// Entries returns the entries of all pods that the queue holds, those in flight included,
// in no order.
func (q *Queue) Entries() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for i := range q.heaps {
			for e := range q.heaps[i].all() {
				if !yield(e) {
					return
				}
			}
		}
		for _, e := range q.inFlight {
			if !yield(e) {
				return
			}
		}
	}
}

// State is what the queue knows of one pod, for inspection.
type State struct {
	Pod   *object.Pod
	Place Place
	// Since is when the pod was put into its place, or was last put there again.
	Since time.Time
	// Queued is when the pod was added to the queue or last came back to it from an
	// attempt; FirstActive is when it was active for the first time, zero before.
	Queued, FirstActive time.Time
	Attempts            int
	// Rejections counts the attempts that ended in a rejection, Errors those that ended in
	// an error since the last rejection.
	Rejections, Errors int
	// RejectedBy and PendingBy name the plugins that the pod waits for, sorted.
	RejectedBy, PendingBy []string
	// PreEnqueueStatus is why it is gated, nil if it is not.
	PreEnqueueStatus *decision.Status
	NominatedNode    string // "" for none
}

// State returns a copy of what the queue knows of the pod.
func (e *Entry) State() State {
	s := State{
		Pod: e.Pod, Place: e.place, Since: e.since, Queued: e.Timestamp, FirstActive: e.FirstActive,
		Attempts: e.Tries, Rejections: e.rejections, Errors: e.errors,
		RejectedBy: slices.Clone(e.unknown), PreEnqueueStatus: e.preEnqueueStatus, NominatedNode: e.nominated,
	}
	for _, r := range e.rejectors {
		if r.pending {
			s.PendingBy = append(s.PendingBy, r.plugin.name)
		} else {
			s.RejectedBy = append(s.RejectedBy, r.plugin.name)
		}
	}
	slices.Sort(s.RejectedBy)
	return s
}

// StayEnd returns when Flush will move the pod: its backoff is over, or it was
// unschedulable or gated for the longest time. It is zero for a pod elsewhere.
func (q *Queue) StayEnd(e *Entry) time.Time {
	switch e.Place() {
	case Backoff, ErrorBackoff:
		return e.backoffEnd.Add(q.backoffs.grain())
	case Unschedulable, Gated:
		return q.opts.stayEnd(e)
	}
	return time.Time{}
}

// Position returns at which position the pod waits: one more than the number of pods that
// leave its place before it; 0 for a pod in flight or not in the queue. It looks at all
// pods in the place.
func (q *Queue) Position(e *Entry) int {
	switch e.Place() {
	case Nowhere, InFlight:
		return 0
	}
	h := &q.heaps[e.place]
	position := 1
	for other := range h.all() {
		if other != e && h.less(other, e) {
			position++
		}
	}
	return position
}

// Dump returns the states of all pods in the queue, sorted by place, then namespace, name
// and UID.
func (q *Queue) Dump() []State {
	var states []State
	for e := range q.Entries() {
		states = append(states, e.State())
	}
	slices.SortFunc(states, func(a, b State) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.Pod.Namespace, b.Pod.Namespace),
			cmp.Compare(a.Pod.Name, b.Pod.Name), cmp.Compare(a.Pod.UID, b.Pod.UID))
	})
	return states
}

// String formats the pod's state on one line.
func (s State) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s (%s) since %s: attempts %d, rejections %d, errors %d",
		s.Place, s.Pod.Key(), s.Pod.UID, s.Since.UTC().Format(time.RFC3339Nano), s.Attempts, s.Rejections, s.Errors)
	if len(s.RejectedBy) > 0 {
		fmt.Fprintf(&b, ", rejected by %s", strings.Join(s.RejectedBy, " "))
	}
	if len(s.PendingBy) > 0 {
		fmt.Fprintf(&b, ", pending by %s", strings.Join(s.PendingBy, " "))
	}
	if s.PreEnqueueStatus != nil {
		fmt.Fprintf(&b, ", gated by %s", s.PreEnqueueStatus.Plugin)
	}
	if s.NominatedNode != "" {
		fmt.Fprintf(&b, ", nominated to %s", s.NominatedNode)
	}
	return b.String()
}

// String formats the states of all pods in the queue, one pod a line, in the order of Dump.
func (q *Queue) String() string {
	var b strings.Builder
	for _, s := range q.Dump() {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

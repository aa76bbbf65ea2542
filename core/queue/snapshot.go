package queue

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// Snapshot is the state of a queue, for Queue.Restore. It holds pod objects only for pods in
// flight; Restore is given the others.
type Snapshot struct {
	Sequence uint64  // of the last arrival
	Epoch    Age     // start of the first backoff window
	Entries  []Saved // by Sequence
	Events   SavedEvents
	Groups   []SavedGroup `json:",omitempty"` // those with waiting pods, by namespace, then name
}

// SavedGroup is a pod group of a Snapshot: when its pods are tried next.
type SavedGroup struct {
	Namespace, Name string
	Queued          Age       // from when the backoff counts
	Sequence        uint64    // number of the arrival
	Rejections      int       `json:",omitempty"`
	Errors          int       `json:",omitempty"` // since the last rejection
	BackoffEnd      Age       // start of the window in which the backoff ends
	Gate            types.UID `json:",omitempty"` // pod that a PreEnqueue plugin rejects
}

// SavedEvents holds what a queue keeps of the events that arrived while a pod was in
// flight, for a restored queue to ask the hints when that pod is rejected: the number of
// the last event, the last dropped ones by resource and action, and the events that are
// kept, oldest first.
type SavedEvents struct {
	Number uint64             `json:",omitempty"`
	Old    []SavedNumber      `json:",omitempty"`
	Last   []*framework.Event `json:"-"`
}

// SavedNumber is the number of the last dropped event on Resource with the action of bit Bit.
type SavedNumber struct {
	Resource framework.EventResource
	Bit      int
	Number   uint64
}

// Saved is a pod of a Snapshot, with its place and its history in the queue. Popped and the fields
// after it are set only for a pod in flight.
type Saved struct {
	UID         types.UID `json:"-"`
	Place       Place
	Since       Age    // when it was put into Place
	Queued      Age    // when it was added, or came back from an attempt
	FirstActive Age    // when it was active for the first time
	Sequence    uint64 // number of its arrival
	Tries       int    `json:",omitempty"` // attempts

	Rejections int  `json:",omitempty"`
	Errors     int  `json:",omitempty"` // since the last rejection
	BackoffEnd Age  // start of the window in which the backoff ends
	Flushed    bool `json:",omitempty"` // left unschedulable without an event

	RejectedBy []Rejector `json:",omitempty"`
	Unknown    []string   `json:",omitempty"` // rejected it, and not in its profile
	Gate       *Gate      `json:",omitempty"`
	Nominated  string     `json:",omitempty"` // node

	Popped    uint64               `json:",omitempty"` // number of the last event at its Pop
	Changes   framework.ActionType `json:",omitempty"` // updates of the pod since its Pop
	Activated bool                 `json:",omitempty"` // Activate was called since its Pop
	Called    bool                 `json:",omitempty"` // MoveInNamespaces ran since its Pop
	Pod       *object.Pod          `json:"-"`          // as it is in the queue
	Changed   *object.Pod          `json:"-"`          // as it was at its Pop; nil: as Pod
}

// Rejector is a plugin that rejected a pod. Pending is set if it answered Pending.
type Rejector struct {
	Plugin  string
	Pending bool `json:",omitempty"`
}

// Gate is the PreEnqueue status of a gated pod.
type Gate struct {
	Code    decision.Code
	Plugin  string
	Reasons []string
}

// Age is how many nanoseconds before the snapshot something was, negative if it is to come. The
// constant never stands for a time that is not set.
type Age int64

// never is the Age that stands for a time that is not set (the zero time).
const never Age = math.MinInt64

// ageOf returns the age of t at the time now.
func ageOf(t, now time.Time) Age {
	if t.IsZero() {
		return never
	}
	return Age(now.Sub(t))
}

// Time returns the time that lies so long before now; zero for never.
func (a Age) Time(now time.Time) time.Time {
	if a == never {
		return time.Time{}
	}
	return now.Add(-time.Duration(a))
}

// Snapshot returns the queue's state at the time now, with entries sorted by Sequence.
func (q *Queue) Snapshot(now time.Time) Snapshot {
	n := q.inFlight.len()
	for i := range q.heaps {
		n += q.heaps[i].len()
	}
	s := Snapshot{Sequence: q.sequence, Epoch: ageOf(q.backoffs.epoch, now), Entries: make([]Saved, 0, n)}
	for e := range q.Entries() {
		s.Entries = append(s.Entries, e.saved(now, q.events.calls))
	}
	slices.SortFunc(s.Entries, func(a, b Saved) int { return cmp.Compare(a.Sequence, b.Sequence) })
	if q.inFlight.len() > 0 {
		s.Events = q.events.saved()
	}
	s.Groups = q.groups.saved(now)
	return s
}

// saved returns the events in the form of a snapshot.
func (l *inFlightEvents) saved() SavedEvents {
	s := SavedEvents{Number: l.number}
	for n := l.number - min(l.number, inFlightEventsKept) + 1; n <= l.number; n++ {
		if e := l.last[n%inFlightEventsKept]; e != nil {
			s.Last = append(s.Last, e)
		}
	}
	for r := range l.old {
		for bit, number := range l.old[r] {
			if number > 0 {
				s.Old = append(s.Old, SavedNumber{framework.EventResource(r), bit, number})
			}
		}
	}
	return s
}

// restore sets an empty inFlightEvents to the events of a valid snapshot.
func (l *inFlightEvents) restore(s *SavedEvents) {
	l.number = s.Number
	for i, e := range s.Last {
		n := s.Number - uint64(len(s.Last)-1-i)
		l.last[n%inFlightEventsKept] = e
	}
	for _, o := range s.Old {
		l.old[o.Resource][o.Bit] = o.Number
	}
}

// Valid returns an error that names what contradicts itself in the snapshot, so that no
// queue can be restored from it; nil if one can.
func (s *Snapshot) Valid() error {
	l := &s.Events
	if n := uint64(len(l.Last)); n > min(l.Number, inFlightEventsKept) {
		return fmt.Errorf("%d events are kept of %d", n, l.Number)
	}
	for _, o := range l.Old {
		if int(o.Resource) >= framework.NumEventResources || o.Bit < 0 || o.Bit >= 32 {
			return fmt.Errorf("there is no event resource %d with action %d", o.Resource, o.Bit)
		}
	}
	for i := range s.Entries {
		if e := &s.Entries[i]; e.Place == Nowhere || e.Place > InFlight || (e.Place == Gated) != (e.Gate != nil) {
			return fmt.Errorf("pod %s has place %d in the queue, which is not valid", e.UID, e.Place)
		}
	}
	return nil
}

// saved returns the entry in the form of a snapshot made at the time now, with times as
// ages. calls is the number of calls of MoveInNamespaces so far.
func (e *Entry) saved(now time.Time, calls uint64) Saved {
	s := Saved{
		UID: e.Pod.UID, Place: e.place, Since: ageOf(e.since, now), Queued: ageOf(e.Timestamp, now), FirstActive: ageOf(e.FirstActive, now),
		Sequence: e.Sequence, Tries: e.Tries, Rejections: e.own.rejections, Errors: e.own.errors, BackoffEnd: ageOf(e.own.backoffEnd, now),
		Flushed: e.flushed, Unknown: e.unknown, Nominated: e.nominated,
	}
	for _, r := range e.rejectors {
		s.RejectedBy = append(s.RejectedBy, Rejector{r.plugin.name, r.pending})
	}
	if g := e.preEnqueueStatus; g != nil {
		s.Gate = &Gate{g.Code, g.Plugin, g.Reasons}
	}
	if e.place == InFlight {
		s.Popped, s.Changes, s.Activated, s.Called, s.Pod, s.Changed = e.popped, e.changes, e.activated, e.calls != calls, e.Pod, e.changed
	}
	return s
}

// Restore fills an empty queue from a valid snapshot and returns the entries. Pods in
// flight are in the snapshot; for others find returns the pod, and those for which it
// returns nil are left out.
func (q *Queue) Restore(now time.Time, s *Snapshot, find func(types.UID) *object.Pod) []*Entry {
	q.backoffs.epoch = s.Epoch.Time(now)
	var entries []*Entry
	var nominated []string
	for i := range s.Entries {
		saved := &s.Entries[i]
		p := saved.Pod
		if p == nil {
			p = find(saved.UID)
		}
		if p == nil {
			continue
		}
		entries, nominated = append(entries, q.restored(now, saved, p)), append(nominated, saved.Nominated)
	}
	q.restoreGroups(now, s.Groups, entries)
	for i, e := range entries {
		q.Nominate(e, nominated[i])
	}
	q.sequence = s.Sequence
	q.events.restore(&s.Events)
	return entries
}

// restored returns a new entry for the saved pod p, without its nomination. The entry is in the
// place that it had, unless it waits with a group: restoreGroups puts it there.
func (q *Queue) restored(now time.Time, s *Saved, p *object.Pod) *Entry {
	e := newEntry(p)
	e.place, e.since, e.flushed, e.unknown = s.Place, s.Since.Time(now), s.Flushed, s.Unknown
	e.rejections, e.errors, e.backoffEnd = s.Rejections, s.Errors, s.BackoffEnd.Time(now)
	e.Timestamp, e.FirstActive = s.Queued.Time(now), s.FirstActive.Time(now)
	e.Tries, e.Sequence = s.Tries, s.Sequence
	e.popped, e.changes, e.activated, e.changed = s.Popped, s.Changes, s.Activated, s.Changed
	if s.Called {
		e.calls = q.events.calls - 1 // any other number
	}
	for _, r := range s.RejectedBy {
		if plugin := q.plugins.find(p.SchedulerName, r.Plugin); plugin != nil {
			e.rejectors = append(e.rejectors, rejector{plugin, r.Pending})
		}
	}
	if g := s.Gate; g != nil {
		e.preEnqueueStatus = &decision.Status{Code: g.Code, Plugin: g.Plugin, Reasons: g.Reasons}
	}
	if e.place == InFlight || !q.opts.hasGroup(p) { // else restoreGroups does
		q.enter(now, e)
	}
	return e
}

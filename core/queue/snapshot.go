package queue

import (
	"cmp"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
)

// Snapshot is all that a queue knows while no pod is in flight, except for the pods
// themselves.
type Snapshot struct {
	Sequence uint64
	Epoch    Age
	Entries  []Saved // by Sequence
}

// Saved is an entry of a Snapshot.
type Saved struct {
	UID         types.UID `json:"-"`
	Place       Place
	Since       Age
	Queued      Age
	FirstActive Age
	Sequence    uint64
	Tries       int `json:",omitempty"`

	Rejections int  `json:",omitempty"`
	Errors     int  `json:",omitempty"`
	BackoffEnd Age  // of the window
	Flushed    bool `json:",omitempty"`

	RejectedBy []Rejector `json:",omitempty"`
	Unknown    []string   `json:",omitempty"`
	Gate       *Gate      `json:",omitempty"`
	Nominated  string     `json:",omitempty"`
}

// Rejector is a plugin that rejected a pod.
type Rejector struct {
	Plugin  string
	Pending bool `json:",omitempty"`
}

// Gate is why a pod is gated.
type Gate struct {
	Code    decision.Code
	Plugin  string
	Reasons []string
}

// Age is how long before the snapshot something was, negative if it is to come, in
// nanoseconds; never if it was not.
type Age int64

const never Age = math.MinInt64

func ageOf(t, now time.Time) Age {
	if t.IsZero() {
		return never
	}
	return Age(now.Sub(t))
}

// Time is the time when it is now that long after it.
func (a Age) Time(now time.Time) time.Time {
	if a == never {
		return time.Time{}
	}
	return now.Add(-time.Duration(a))
}

// Snapshot returns what the queue knows. No pod may be in flight.
func (q *Queue) Snapshot(now time.Time) Snapshot {
	s := Snapshot{Sequence: q.sequence, Epoch: ageOf(q.epoch, now)}
	for e := range q.Entries() {
		s.Entries = append(s.Entries, e.saved(now))
	}
	slices.SortFunc(s.Entries, func(a, b Saved) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return s
}

func (e *Entry) saved(now time.Time) Saved {
	s := Saved{
		UID: e.Pod.UID, Place: e.place, Since: ageOf(e.since, now), Queued: ageOf(e.Timestamp, now), FirstActive: ageOf(e.FirstActive, now),
		Sequence: e.Sequence, Tries: e.Tries, Rejections: e.rejections, Errors: e.errors, BackoffEnd: ageOf(e.backoffEnd, now),
		Flushed: e.flushed, Unknown: e.unknown, Nominated: e.nominated,
	}
	for _, r := range e.rejectors {
		s.RejectedBy = append(s.RejectedBy, Rejector{r.plugin.name, r.pending})
	}
	if g := e.preEnqueueStatus; g != nil {
		s.Gate = &Gate{g.Code, g.Plugin, g.Reasons}
	}
	return s
}

// Restore has an empty queue know what the snapshot says, of the pods that find
// finds. It returns their entries.
func (q *Queue) Restore(now time.Time, s *Snapshot, find func(types.UID) *object.Pod) []*Entry {
	q.epoch = s.Epoch.Time(now)
	var entries []*Entry
	for i := range s.Entries {
		saved := &s.Entries[i]
		p := find(saved.UID)
		if p == nil {
			continue
		}
		e := q.restored(now, saved, p)
		q.Nominate(e, saved.Nominated)
		entries = append(entries, e)
	}
	q.sequence = s.Sequence
	return entries
}

// restored brings the pod to the place where it was.
func (q *Queue) restored(now time.Time, s *Saved, p *object.Pod) *Entry {
	e := &Entry{index: nowhere, place: s.Place, since: s.Since.Time(now), rejections: s.Rejections, errors: s.Errors,
		backoffEnd: s.BackoffEnd.Time(now), flushed: s.Flushed, unknown: s.Unknown}
	e.Pod, e.Timestamp, e.FirstActive = p, s.Queued.Time(now), s.FirstActive.Time(now)
	e.Tries, e.Sequence = s.Tries, s.Sequence
	for _, r := range s.RejectedBy {
		if plugin := q.plugins.find(p.SchedulerName, r.Plugin); plugin != nil {
			e.rejectors = append(e.rejectors, rejector{plugin, r.Pending})
		}
	}
	if g := s.Gate; g != nil {
		e.preEnqueueStatus = &decision.Status{Code: g.Code, Plugin: g.Plugin, Reasons: g.Reasons}
	}
	q.enter(now, e)
	return e
}

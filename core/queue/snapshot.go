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
	// At is where the lists of the plugins that it waits for have the pod.
	At []int `json:",omitempty"`
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
	for _, slot := range e.slots {
		s.At = append(s.At, slot.at)
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
	for _, p := range q.plugins.plugins {
		p.sortMembers(entries, s)
	}
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

// sortMembers brings the plugin's list in the order that the snapshot has: events
// call the pods in that order.
func (p *plugin) sortMembers(entries []*Entry, s *Snapshot) {
	at := map[*Entry]int{}
	saved := s.Entries
	for _, e := range entries {
		for saved[0].UID != e.Pod.UID {
			saved = saved[1:]
		}
		for i, slot := range e.slots {
			if slot.plugin == p && i < len(saved[0].At) {
				at[e] = saved[0].At[i]
			}
		}
	}
	slices.SortFunc(p.members, func(a, b member) int { return cmp.Compare(at[a.Entry], at[b.Entry]) })
	for i, m := range p.members {
		for k := range m.slots {
			if m.slots[k].plugin == p {
				m.slots[k].at = i
			}
		}
	}
}

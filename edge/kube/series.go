package kube

import (
	"hash/maphash"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
)

// As client-go's recorder of events (tools/events) has them.
const (
	finishTime  = 6 * time.Minute  // without a repeat a series is over
	refreshTime = 30 * time.Minute // after this time the count of repeats is written again

	cacheLimit = 50_000 // events of one finishTime; where there are more, series are over earlier
)

// eventKey is what an event and its repeats have in common. It is client-go's key,
// without the parts that follow from these, and the note: what is wrong with a pod now
// must not hide behind what was wrong before.
type eventKey struct {
	pod, related            types.UID
	version, relatedVersion string
	reason                  machine.EventReason
	note                    uint64 // its hash
}

var noteSeed = maphash.MakeSeed()

func keyOf(e machine.PublishEvent) eventKey {
	k := eventKey{pod: e.Pod.UID, version: e.Pod.Version, reason: e.Reason, note: maphash.String(noteSeed, e.Note)}
	if e.Related != nil {
		k.related, k.relatedVersion = e.Related.UID, e.Related.Version
	}
	return k
}

// eventSeries is an Event and how often it was repeated.
type eventSeries struct {
	namespace, name string
	first, last     time.Time // occurrences
	count           int32
	written         int32 // the count that the API knows of
	refreshed       time.Time
}

// api returns the series as an Event shows it: nil where nothing was repeated.
func (s *eventSeries) api() *eventsv1.EventSeries {
	if s.count < 2 {
		return nil
	}
	return &eventsv1.EventSeries{Count: s.count, LastObservedTime: metav1.MicroTime{Time: s.last}}
}

// eventCache counts repeats of the events of the last minutes. Client-go's own
// recorder keeps every event that is published, whole and without bound, which
// at a thousand bindings a second is a gigabyte. It is for any goroutine.
type eventCache struct {
	mu            sync.Mutex
	recent, older map[eventKey]*eventSeries // older: not repeated since the last turn
}

func newEventCache() *eventCache {
	return &eventCache{recent: map[eventKey]*eventSeries{}, older: map[eventKey]*eventSeries{}}
}

// add counts an occurrence. It returns the series so far, and whether to write it to the
// API now: at the first occurrence, at the second, and then once in a while.
func (c *eventCache) add(k eventKey, e machine.PublishEvent, now time.Time) (eventSeries, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.recent[k]
	if s == nil {
		if s = c.older[k]; s == nil {
			s = newSeries(e, now)
		}
		delete(c.older, k)
		c.recent[k] = s
	}
	s.count++
	s.last = now
	tell := s.count <= 2 || now.Sub(s.refreshed) >= refreshTime
	if tell {
		s.written, s.refreshed = s.count, now
	}
	return *s, tell
}

// lost records that the last write of the series may not have reached the API.
func (c *eventCache) lost(k eventKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range []*eventSeries{c.recent[k], c.older[k]} {
		if s != nil {
			s.written, s.refreshed = 0, time.Time{}
		}
	}
}

// repeated reports whether there were more than count occurrences.
func (c *eventCache) repeated(k eventKey, count int32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.recent[k]
	return s != nil && s.count > count
}

func (c *eventCache) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.recent) >= cacheLimit
}

// turn removes the events that were not repeated since the last turn. It returns the
// series removed whose count the API does not know.
func (c *eventCache) turn() []eventSeries {
	c.mu.Lock()
	defer c.mu.Unlock()
	var finished []eventSeries
	for _, s := range c.older { // in any order: each is an Event of its own
		if s.count > 1 && s.count != s.written {
			finished = append(finished, *s)
		}
	}
	c.recent, c.older = map[eventKey]*eventSeries{}, c.recent
	return finished
}

func newSeries(e machine.PublishEvent, now time.Time) *eventSeries {
	return &eventSeries{namespace: e.Pod.Namespace, name: eventName(e.Pod.Name, now), first: now}
}

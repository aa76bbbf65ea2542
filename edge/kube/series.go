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

// The periods of client-go's recorder of Events (tools/events), and the cache's bound.
const (
	finishTime  = 6 * time.Minute  // a series is over one to two of these after its last repeat
	refreshTime = 30 * time.Minute // after this time the count of repeats is written again

	cacheLimit = 50_000 // events of one finishTime; if there are more, series are over earlier
)

// eventKey identifies an event: repeats have an equal key. It is client-go's key, without
// the parts that follow from these, and with the note: a new reason why a pod does not
// fit must not count as a repeat of the old one.
type eventKey struct {
	pod, related            types.UID
	version, relatedVersion string
	reason                  machine.EventReason
	note                    uint64 // the hash of the note
}

// noteSeed is the seed of eventKey.note.
var noteSeed = maphash.MakeSeed()

// keyOf returns the key by which e and its repeats are counted: the UID and version of the
// pod and of the related object, the reason and the note.
func keyOf(e machine.PublishEvent) eventKey {
	k := eventKey{pod: e.Pod.UID, version: e.Pod.Version, reason: e.Reason, note: maphash.String(noteSeed, e.Note)}
	if e.Related != nil {
		k.related, k.relatedVersion = e.Related.UID, e.Related.Version
	}
	return k
}

// eventSeries is a published Event and how often it occurred.
type eventSeries struct {
	namespace, name string
	first, last     time.Time // the first and the last occurrence
	count           int32     // occurrences
	written         int32     // the count that was last sent to the API server
	refreshed       time.Time // when written was sent; zero: never, or it may not have arrived
}

// api returns the Event's series field; nil if the Event occurred once only.
func (s *eventSeries) api() *eventsv1.EventSeries {
	if s.count < 2 {
		return nil
	}
	return &eventsv1.EventSeries{Count: s.count, LastObservedTime: metav1.MicroTime{Time: s.last}}
}

// eventCache counts the repeats of the events of the last minutes. Any goroutine may call it.
// client-go's recorder keeps every whole Event without bound, which at a thousand bindings
// a second is a gigabyte.
type eventCache struct {
	mu sync.Mutex
	// recent has the events that occurred since the last turn, older those that occurred
	// in the period before, but not since.
	recent, older map[eventKey]*eventSeries
}

// newEventCache returns an empty cache.
func newEventCache() *eventCache {
	return &eventCache{recent: map[eventKey]*eventSeries{}, older: map[eventKey]*eventSeries{}}
}

// add counts an occurrence at now. It returns the series so far, and whether to write it to
// the API now: at the first occurrence, at the second, when refreshTime has passed since the
// last write, and when that may not have arrived. It counts the series as written then.
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

// lost records that the last write of the event may not have reached the API server, so
// that the next occurrence is written.
func (c *eventCache) lost(k eventKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range []*eventSeries{c.recent[k], c.older[k]} {
		if s != nil {
			s.written, s.refreshed = 0, time.Time{}
		}
	}
}

// repeated reports whether the event has occurred more than count times, the last time since
// the last turn.
func (c *eventCache) repeated(k eventKey, count int32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.recent[k]
	return s != nil && s.count > count
}

// full reports whether the cache has cacheLimit recent events, so that turn must be called
// before the period ends, to bound the memory.
func (c *eventCache) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.recent) >= cacheLimit
}

// turn ends a period: it removes the events that did not occur since the last turn, and
// returns those series of them whose last count was not sent to the API server.
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

// newSeries returns the series of an event that has not been counted yet (count 0).
func newSeries(e machine.PublishEvent, now time.Time) *eventSeries {
	return &eventSeries{namespace: e.Pod.Namespace, name: eventName(e.Pod.Name, now), first: now}
}

package records

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/queue"
)

// Of a History: how often it counts, and how many samples it keeps, which is an hour's.
const (
	SampleTime  = 5 * time.Second
	mostSamples = 720
)

// Bounds of the pods whose bindings are under way, and of how long they may be.
const (
	mostBinding  = 1 << 14
	longestBound = 20 * time.Minute // Permit plugins hold a pod for 15 at most
)

// History counts what happened, sample by sample, for an hour. It reads the log, and takes no time
// of the scheduling loop. Take belongs to one goroutine; any may read.
type History struct {
	follower *Follower
	decided  map[string]int64 // nanosecond of the decision, by the UID of pods that are not bound yet
	times    []int64          // scratch: how long bindings took

	mu      sync.Mutex
	samples []Sample // a ring
	oldest  int
}

// Sample is what happened in the time until then since the sample before.
type Sample struct {
	Time     time.Time
	Attempts [len(results)]int // in the order of Results
	Bound    int
	Evicted  int
	Lost     uint64       // records that were gone before they were counted
	Queue    queue.Counts // at that time
	Binding  Times        // from the decision until the binding is confirmed
}

// Results returns how attempts end.
func Results() []decision.Result { return results[:] }

// NewHistory returns a history of what the recorder records from now on.
func NewHistory(r *Recorder) *History {
	return &History{follower: r.Follow(Query{}, r.Next()), decided: map[string]int64{}, samples: make([]Sample, 0, mostSamples)}
}

// Take takes a sample. counts are the queue's at that time.
func (h *History) Take(now time.Time, counts queue.Counts) {
	s := Sample{Time: now.UTC(), Queue: counts}
	h.times = h.times[:0]
	h.follower.each(func(e entry, _, lost uint64) bool {
		s.Lost += lost
		h.count(&s, e)
		return true
	})
	slices.Sort(h.times)
	s.Binding = Times{Pods: len(h.times), P50: quantile(h.times, 50), P99: quantile(h.times, 99)}
	maps.DeleteFunc(h.decided, func(_ string, at int64) bool { return now.UnixNano()-at > int64(longestBound) })
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.samples) < mostSamples {
		h.samples = append(h.samples, s)
		return
	}
	h.samples[h.oldest] = s
	h.oldest = (h.oldest + 1) % mostSamples
}

func (h *History) count(s *Sample, e entry) {
	switch e.kind() {
	case kindAttempt:
		s.Attempts[e.result()]++
		switch results[e.result()] {
		case decision.ResultScheduled, decision.ResultWaiting:
			if len(h.decided) < mostBinding {
				h.decided[string(e.uid())] = e.nanosecond()
			}
		default:
			delete(h.decided, string(e.uid()))
		}
	case kindBound:
		s.Bound++
		if at, is := h.decided[string(e.uid())]; is {
			h.times = append(h.times, e.nanosecond()-at)
			delete(h.decided, string(e.uid()))
		}
	case kindEvicted:
		s.Evicted++
	}
}

// Since returns the samples that were taken after the time, the oldest first.
func (h *History) Since(t time.Time) []Sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Concat(h.samples[h.oldest:], h.samples[:h.oldest])
	return slices.DeleteFunc(all, func(s Sample) bool { return !s.Time.After(t) })
}

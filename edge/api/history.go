package api

import (
	"net/http"
	"time"

	"github.com/berth-scheduler/berth/edge/records"
)

// History is the answer of history: columns of one length, with what happened until each time
// since the time before, and how many pods waited then.
type History struct {
	Head
	// Every is how many seconds are between two times. More are, where the loop did not answer.
	Every    int              `json:"every"`
	Times    []time.Time      `json:"times"`
	Attempts map[string][]int `json:"attempts"` // by result
	Bound    []int            `json:"bound"`
	Evicted  []int            `json:"evicted"`
	Queue    map[string][]int `json:"queue"` // by place, as in the summary
	// Binding is how long the bindings of these pods took, in seconds; 0 where there were none.
	Binding BindingTimes `json:"binding"`
	// Lost are records that were gone before they were counted.
	Lost []uint64 `json:"lost"`
}

// BindingTimes are columns of records.Times.
type BindingTimes struct {
	Pods []int     `json:"pods"`
	P50  []float64 `json:"p50"`
	P99  []float64 `json:"p99"`
}

func (h *handler) history(r *http.Request) (any, error) {
	p := paramsOf(r, "since")
	since := p.time("since", h.Now())
	if p.err != nil {
		return nil, p.err
	}
	samples := h.History.Since(since)
	a := &History{Head: head("History"), Every: int(records.SampleTime.Seconds()), Times: column(samples, func(s *records.Sample) time.Time { return s.Time }),
		Attempts: map[string][]int{}, Queue: map[string][]int{},
		Bound:   column(samples, func(s *records.Sample) int { return s.Bound }),
		Evicted: column(samples, func(s *records.Sample) int { return s.Evicted }),
		Lost:    column(samples, func(s *records.Sample) uint64 { return s.Lost }),
		Binding: BindingTimes{
			Pods: column(samples, func(s *records.Sample) int { return s.Binding.Pods }),
			P50:  column(samples, func(s *records.Sample) float64 { return s.Binding.P50 }),
			P99:  column(samples, func(s *records.Sample) float64 { return s.Binding.P99 }),
		}}
	for i, result := range records.Results() {
		a.Attempts[string(result)] = column(samples, func(s *records.Sample) int { return s.Attempts[i] })
	}
	for place, of := range map[string]func(*records.Sample) int{ // any order: each by itself
		"active":        func(s *records.Sample) int { return s.Queue.Active },
		"backoff":       func(s *records.Sample) int { return s.Queue.Backoff },
		"errorBackoff":  func(s *records.Sample) int { return s.Queue.ErrorBackoff },
		"unschedulable": func(s *records.Sample) int { return s.Queue.Unschedulable },
		"gated":         func(s *records.Sample) int { return s.Queue.Gated },
		"inFlight":      func(s *records.Sample) int { return s.Queue.InFlight },
	} {
		a.Queue[place] = column(samples, of)
	}
	return a, nil
}

// column returns one value of each sample.
func column[T any](samples []records.Sample, of func(*records.Sample) T) []T {
	values := make([]T, len(samples))
	for i := range samples {
		values[i] = of(&samples[i])
	}
	return values
}

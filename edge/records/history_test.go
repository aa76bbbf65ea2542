package records

import (
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/loop"
)

// Samples add up to what happened, and say how long bindings took; an hour of them is kept.
func TestHistory(t *testing.T) {
	random := rand.New(rand.NewPCG(34, 5))
	r := New(8 << 20)
	h := NewHistory(r)
	observe := func(i int, effects ...machine.Effect) { r.Observe(loop.Step{Now: at(i), Effects: effects}) }
	bound := func(uid types.UID) machine.Effect {
		return machine.PublishEvent{Pod: &object.Pod{UID: uid}, Reason: machine.ReasonScheduled}
	}
	now, scheduled, unschedulable, sum := 0, 0, 0, Sample{}
	for sample := range 800 {
		took := 1 + random.IntN(20)
		n := random.IntN(5)
		for i := range n { // bound in one sample, or in the next
			d := placement(1000*sample+i, 1)
			observe(now, done(d)...)
			observe(now+took, bound(d.UID))
			scheduled++
		}
		now += took
		observe(now, done(rejection(1, 1, "Insufficient cpu"))...)
		unschedulable++
		r.Flush()
		h.Take(at(now), queue.Counts{Unschedulable: sample})
		s := h.Since(at(now - 1))
		if len(s) != 1 || s[0].Queue.Unschedulable != sample || s[0].Bound != n || s[0].Binding.Pods != n || n > 0 && s[0].Binding.P99 != float64(took)/1000 {
			t.Fatalf("sample %d: %+v, want %d pods in %d ms", sample, s, n, took)
		}
		for i := range sum.Attempts {
			sum.Attempts[i] += s[0].Attempts[i]
		}
		now++
	}
	if sum.Attempts != [len(results)]int{0: scheduled, 1: unschedulable} || Results()[1] != decision.ResultUnschedulable || len(h.decided) != 0 {
		t.Errorf("%v attempts, want %d and %d; %d pods are being bound", sum.Attempts, scheduled, unschedulable, len(h.decided))
	}
	all := h.Since(time.Time{})
	if len(all) != mostSamples || cap(h.samples) != mostSamples || all[0].Queue.Unschedulable != 80 || all[mostSamples-1].Queue.Unschedulable != 799 {
		t.Errorf("%d samples, from %+v", len(all), all[0])
	}
}

// What is kept of pods that are never bound is bounded, by their number and by time, and what the
// log has dropped before it was counted is counted as lost.
func TestHistoryIsBounded(t *testing.T) {
	r := New(LeastBytes)
	h := NewHistory(r)
	const pods = 3 * mostBinding
	for i := range pods {
		r.Observe(loop.Step{Now: at(i), Effects: done(placement(i, 1))})
		if i%1000 == 0 {
			r.Flush()
			h.Take(at(i), queue.Counts{})
		}
	}
	if n := len(h.decided); n != mostBinding {
		t.Errorf("%d pods are being bound, want %d", n, mostBinding)
	}
	for i := range pods {
		r.Observe(loop.Step{Now: at(pods + i), Effects: done(placement(i, 1))})
	}
	r.Flush()
	end := at(2 * pods).Add(longestBound)
	h.Take(end, queue.Counts{})
	s := h.Since(end.Add(-1))[0]
	if s.Lost == 0 || int(s.Lost)+s.Attempts[0] < pods || len(h.decided) != 0 {
		t.Errorf("%d lost and %d counted of %d; %d pods are being bound", s.Lost, s.Attempts[0], pods, len(h.decided))
	}
}

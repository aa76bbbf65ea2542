package queue

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// Backoff doubles with every failure up to its limit, and never overflows.
func TestBackoff(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		initial, max time.Duration
		count        int
		want         time.Duration
	}{
		{s, 10 * s, 0, 0},
		{s, 10 * s, 1, s},
		{s, 10 * s, 2, 2 * s},
		{s, 10 * s, 4, 8 * s},
		{s, 10 * s, 5, 10 * s},
		{s, 10 * s, math.MaxInt32, 10 * s},
		{s, 8 * s, 4, 8 * s},
		{20 * s, 10 * s, 1, 10 * s},
		{0, 10 * s, 9, 0},
		{s, math.MaxInt64, 34, s << 33},
		{s, math.MaxInt64, 35, math.MaxInt64},
		{1, math.MaxInt64, 63, 1 << 62},
		{1, math.MaxInt64, 64, math.MaxInt64},
		{1, math.MaxInt64, math.MaxInt64, math.MaxInt64},
	} {
		if got := backoff(c.initial, c.max, c.count); got != c.want {
			t.Errorf("backoff(%v, %v, %d) = %v, want %v", c.initial, c.max, c.count, got, c.want)
		}
	}
}

// Backoff stays between the initial and the largest, and never shrinks with more
// failures.
func TestBackoffIsBoundedAndGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "max"))
		initial := time.Duration(rapid.Int64Range(1, int64(limit)).Draw(t, "initial"))
		count := rapid.IntRange(1, 1<<31).Draw(t, "count")
		wait, next := backoff(initial, limit, count), backoff(initial, limit, count+1)
		if wait < initial || wait > limit || next < wait {
			t.Fatalf("wait %d, then %d: not in [%d, %d] and growing", wait, next, initial, limit)
		}
	})
}

// A pod comes back in the first whole second after its backoff.
func TestBackoffEndsByWindows(t *testing.T) {
	b := newBench(t)
	b.Add(start, pod("p"))
	b.pop(start, "p")
	b.Requeue(start, uid("p"), outcome{}) // 300 ms past the second: ends at 1.3 s
	b.want("p", ErrorBackoff)
	end := at(1700 * time.Millisecond)
	b.wantTimer(end)
	b.Flush(end.Add(-1))
	b.want("p", ErrorBackoff)
	b.Flush(end)
	b.want("p", Active)
	b.wantArrival("active", "BackoffComplete")
}

// Rejections and errors have a backoff each, which grows with failures of that kind.
func TestBackoffGrowsPerKindOfFailure(t *testing.T) {
	b := newBench(t)
	b.Add(start, pod("p"))
	for i, c := range []struct {
		outcome outcome
		wait    time.Duration
	}{
		{outcome{}, 1}, {outcome{}, 2}, {by("Room"), 1}, {by("Room"), 2}, {outcome{}, 1},
		{by("Room"), 4}, {by("Room"), 8}, {by("Room"), 10}, {by("Room"), 10}, {outcome{}, 1}, {by("No such plugin"), 2},
	} {
		now := at(time.Duration(i) * time.Hour)
		b.pop(now, "p")
		b.Move(now, on(framework.Add)) // a node comes: pods that Room rejects are not requeued
		b.Requeue(now, uid("p"), c.outcome)
		b.wantTimer(now.Add(c.wait * time.Second).Truncate(time.Second).Add(time.Second))
		b.Flush(now.Add(time.Minute))
		b.want("p", Active)
	}
}

// A pod that has a reason to wait is not tried before its backoff is over,
// until the reason is gone.
func TestBackoffHoldsAPod(t *testing.T) {
	b := newBench(t)
	b.door.closed = true
	for _, name := range []string{"b", "err"} {
		b.Add(start, pod(name, app("b")))
	}
	b.pop(start, "b")
	b.pop(start, "err")
	b.Requeue(start, uid("b"), by("Room"))
	b.Requeue(start, uid("err"), outcome{})
	b.Move(start, on(framework.Add))
	b.want("b", ErrorBackoff)
	if b.Ready() {
		t.Error("a pod that waits is to be tried")
	}
	b.SkipBackoff(start, uid("b"))
	b.SkipBackoff(start, uid("err"))
	b.want("b", Backoff)
	b.want("err", ErrorBackoff)
	b.pop(start, "b")
}

// With a largest backoff of zero no pod backs off.
func TestNoBackoff(t *testing.T) {
	b := newBench(t, func(o *Options) { o.MaxBackoff = 0 })
	b.Add(start, pod("p"))
	b.reject(start, "p", outcome{})
	b.want("p", Active)
	b.reject(start, "p", by("Room"))
	b.want("p", Unschedulable)
	b.Move(start, on(framework.Add))
	b.want("p", Active)
}

// A backoff of centuries neither overflows nor ends early.
func TestLongestBackoff(t *testing.T) {
	b := newBench(t, func(o *Options) { o.InitialBackoff, o.MaxBackoff = math.MaxInt64, math.MaxInt64 })
	b.Add(start, pod("p"))
	b.reject(start, "p", outcome{})
	b.Flush(at(200 * 365 * 24 * time.Hour))
	b.want("p", ErrorBackoff)
	if next, ok := b.NextTimer(); !ok || next.Year() != 2318 {
		t.Errorf("next timer %v %v", next, ok)
	}
}

// Of the pods that back off, the idle pop takes the one whose window is first,
// in a window the one that QueueSort puts first, and never one after an error.
func TestIdlePop(t *testing.T) {
	b := newBench(t)
	for i, name := range []string{"err", "late", "low", "high"} {
		b.Add(start, pod(name, priority(int32(i))))
	}
	outcomes := map[string]outcome{"err": {}, "late": by("Room"), "low": by("Room"), "high": by("Room")}
	for _, name := range []string{"high", "low", "late", "err"} {
		b.pop(start, name)
	}
	b.Move(start, on(framework.Add))
	for name, o := range outcomes {
		now := start
		if name == "late" {
			now = at(900 * time.Millisecond) // in the next window
		}
		b.Requeue(now, uid(name), o)
	}
	b.pop(at(time.Second), "high")
	b.pop(at(time.Second), "low")
	b.pop(at(time.Second), "late")
	b.pop(at(time.Second), "")
	b.want("err", ErrorBackoff)
	b.wantArrival("active", "PopFromBackoffQ")
}

// Without the gate SchedulerPopFromBackoffQ nobody is taken out of backoff, and it ends
// to the nanosecond.
func TestBackoffIsWaitedOut(t *testing.T) {
	b := newBench(t, func(o *Options) { o.WaitOutBackoff = true })
	b.Add(start, pod("p"))
	b.pop(start, "p")
	b.Move(start, on(framework.Add))
	b.Requeue(at(300*time.Millisecond), uid("p"), by("Room"))
	b.want("p", Backoff)
	end := at(300*time.Millisecond + DefaultInitialBackoff)
	b.wantTimer(end)
	b.Flush(end.Add(-1))
	b.pop(end.Add(-1), "")
	b.Flush(end)
	b.pop(end, "p")
}

// Without the gate SchedulerPopFromBackoffQ a pod whose gate closes in its backoff is
// gated when the backoff ends, and when it is activated.
func TestGateThatClosesInBackoff(t *testing.T) {
	for _, activated := range []bool{false, true} {
		var gate *decision.Status
		q := New(Options{InitialBackoff: time.Second, MaxBackoff: 10 * time.Second, MaxUnschedulable: time.Hour, WaitOutBackoff: true,
			PreEnqueue: func(*object.Pod) *decision.Status { return gate }})
		e := q.Add(start, pod("p"))
		q.Pop(start)
		q.Requeue(start, e, nil, nil)
		if e.Place() != Backoff && e.Place() != ErrorBackoff {
			t.Fatalf("in %v after the attempt", e.Place())
		}
		gate = &decision.Status{Code: decision.UnschedulableAndUnresolvable, Plugin: "Gate"}
		if activated {
			q.Activate(start, e)
		} else {
			q.Flush(at(1500 * time.Millisecond))
		}
		if e.Place() != Gated || q.illegal != nil {
			t.Errorf("activated %v: in %v, %v", activated, e.Place(), q.illegal)
		}
	}
}

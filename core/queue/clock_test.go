package queue

import (
	"testing"
	"time"
	"unsafe"
)

// setBack is the same moment, by the monotonic clock, on a wall clock that was
// set back by whole seconds. There is no other way to make such a time.
func setBack(t time.Time, by time.Duration) time.Time {
	const secondsBegin = 30 // of the word that starts a time with a monotonic reading
	*(*uint64)(unsafe.Pointer(&t)) -= uint64(by/time.Second) << secondsBegin
	return t
}

// Backoffs and stays end when their time has passed, whatever the wall clock
// shows meanwhile.
func TestClockSetBack(t *testing.T) {
	start := time.Now()
	later := func(d time.Duration) time.Time { return setBack(start.Add(d), time.Hour) }
	if later(time.Second).Sub(start) != time.Second || !later(time.Second).Round(0).Before(start.Round(0)) {
		t.Fatal("the clock was not set back")
	}
	b := newBench(t)
	for _, name := range []string{"failed", "rejected"} {
		b.Add(start, pod(name))
		b.pop(start, name)
	}
	b.Requeue(start, uid("failed"), outcome{})
	b.Requeue(later(0), uid("rejected"), by("Deaf"))
	b.want("failed", ErrorBackoff)
	b.Flush(later(3 * time.Second))
	b.want("failed", Active)
	b.want("rejected", Unschedulable)
	if due, ok := b.NextTimer(); !ok || due.Sub(start) != DefaultMaxUnschedulable {
		t.Errorf("the next timer is due after %v", due.Sub(start))
	}
	b.Flush(later(DefaultMaxUnschedulable))
	b.want("rejected", Active)
	if err := b.Check(); err != nil {
		t.Error(err)
	}
}

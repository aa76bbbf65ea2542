package prioritysort

import (
	"math"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// Higher priority goes first, among equals half-bound gangs, and then who came earlier.
func TestLess(t *testing.T) {
	queued := func(priority int32, second int64) *framework.QueuedPodInfo {
		return &framework.QueuedPodInfo{Pod: &object.Pod{Priority: priority}, Timestamp: time.Unix(second, 0)}
	}
	half := func(priority int32, second int64) *framework.QueuedPodInfo {
		q := queued(priority, second)
		q.HalfBound = true
		return q
	}
	for _, c := range []struct {
		name string
		a, b *framework.QueuedPodInfo
		want bool
	}{
		{"higher priority first", queued(2, 9), queued(1, 1), true},
		{"lower priority later", queued(-1, 1), queued(0, 9), false},
		{"the highest of all before the lowest", queued(math.MaxInt32, 9), queued(math.MinInt32, 1), true},
		{"the lowest of all after the highest", queued(math.MinInt32, 1), queued(math.MaxInt32, 9), false},
		{"equal priority: earlier first", queued(1, 1), queued(1, 2), true},
		{"equal priority: later later", queued(1, 2), queued(1, 1), false},
		{"equal priority: half-bound first", half(1, 2), queued(1, 1), true},
		{"equal priority: half-bound not later", queued(1, 1), half(1, 2), false},
		{"half-bound, of lower priority", half(0, 1), queued(1, 2), false},
		{"both half-bound: earlier first", half(1, 1), half(1, 2), true},
		{"equal in both", queued(1, 1), queued(1, 1), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := New().Less(c.a, c.b); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

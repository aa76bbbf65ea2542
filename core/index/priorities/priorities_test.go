package priorities

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// The latest start counts of the pods of the lowest priority, and one that was not started
// counts as starting now.
func TestLatestOfLowest(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC) }
	tb, n := table.New(), 0
	r := tb.SetNode(&object.Node{Name: "a"})
	add := func(priority int32, started time.Time) types.UID {
		n++
		p := &object.Pod{UID: types.UID(fmt.Sprint(n)), Name: fmt.Sprint(n), Priority: priority, Started: started}
		tb.AddPod(p, "a")
		return p.UID
	}
	expect := func(priority int32, latest time.Time) {
		t.Helper()
		if got := Of(tb).LatestOfLowest(r, at(30)); Of(tb).Lowest(r) != priority || !got.Equal(latest) {
			t.Errorf("priority %d, latest %v; want %d, %v", Of(tb).Lowest(r), got, priority, latest)
		}
		if err := tb.Check(); err != nil {
			t.Error(err)
		}
	}
	add(5, at(9))
	expect(5, at(9))
	add(1, at(3))
	last := add(1, at(5))
	add(1, at(4))
	expect(1, at(5))
	waits := add(1, time.Time{})
	expect(1, time.Time{})
	ahead := add(1, at(31))
	expect(1, at(31))
	tb.RemovePod(ahead)
	tb.RemovePod(waits)
	tb.RemovePod(last)
	expect(1, at(4))
}

package scheduler

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/berth-scheduler/berth/edge/daemon"
)

// A heap of which much is live grows by less between collections, and by as much as
// before when that is gone.
func TestPaceOfCollector(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(100)
	collectLess()
	until := func(want int) {
		t.Helper()
		for range 1000 { // cleanups run some time after the collection
			runtime.GC()
			percent := debug.SetGCPercent(want)
			debug.SetGCPercent(percent)
			if percent == want {
				return
			}
			runtime.Gosched()
		}
		t.Errorf("the heap does not come to grow by %d percent", want)
	}
	until(daemon.GCPercent)
	ballast := make([]byte, 400<<20) // never written to, so no memory
	until(100)
	runtime.KeepAlive(ballast)
	until(daemon.GCPercent)
}

func TestGCPercentOf(t *testing.T) {
	for live, want := range map[uint64]int{0: 200, 100 << 20: 200, 160 << 20: 160, 256 << 20: 100, 10 << 30: 100} {
		if got := daemon.GCPercentOf(live); got != want {
			t.Errorf("%d bytes are live: %d percent, want %d", live, got, want)
		}
	}
}

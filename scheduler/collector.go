package scheduler

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/berth-scheduler/berth/edge/daemon"
)

// collectLess makes the collector run less often, where GOGC does not say how often.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(daemon.GCPercent)
		paceCollector(daemon.GCPercent)
	}
}

// paceCollector sets how much the heap may grow until the next collection, where that is
// not percent, and does so again after each collection.
func paceCollector(percent int) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	now := daemon.GCPercentOf(live[0].Value.Uint64())
	if now != percent {
		debug.SetGCPercent(now)
	}
	collected := &struct{ self any }{} // gone with the next collection
	runtime.AddCleanup(collected, paceCollector, now)
}

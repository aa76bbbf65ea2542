package logs

import (
	"maps"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
)

// panicPause is how long panics at one place in the code are only counted after a
// report: a plugin may panic for each pod, each time that it is tried.
const panicPause = time.Minute

// panicReports are about panics of plugins that were contained.
type panicReports struct {
	sites  map[string]panicReport
	hints  map[string]int // how often those of a plugin had panicked when they were looked at
	looked time.Time
}

type panicReport struct {
	last  time.Time
	quiet int // panics since
}

// panicked logs an attempt that a panic ended, once a minute for each place.
func (l *Logger) panicked(r *decision.Decision, pod klog.ObjectRef, p *machine.Panic) {
	before, known := l.panics.sites[p.Site]
	if known && l.now.Sub(before.last) < panicPause {
		before.quiet++
		l.panics.sites[p.Site] = before
		return
	}
	l.panics.sites[p.Site] = panicReport{last: l.now}
	l.logger.Error(r.Err, "Plugin panicked, retrying the pod", "pod", pod, "attempt", r.Attempt, "panicsSinceLastReport", before.quiet)
}

// hintsPanicked logs, once a minute, whose queueing hints panicked.
func (l *Logger) hintsPanicked(m *machine.Machine) {
	if l.now.Sub(l.panics.looked) < panicPause {
		return
	}
	now := m.Queue().Panics()
	for _, plugin := range slices.Sorted(maps.Keys(now)) {
		if n := now[plugin] - l.panics.hints[plugin]; n > 0 {
			l.logger.Error(nil, "Queueing hints panicked, their pods were requeued", "plugin", plugin, "panicsSinceLastReport", n)
		}
	}
	l.panics.hints, l.panics.looked = now, l.now
}

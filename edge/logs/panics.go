package logs

import (
	"time"

	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/recovered"
)

// panicPause is how long panics at one place in the code are only counted after a
// report: a plugin may panic for each pod, each time that it is tried.
const panicPause = time.Minute

// panicReports are about panics of plugins that were contained.
type panicReports struct {
	sites map[string]panicReport
	step  []panicSeen // in the step under way, one for each place
}

type panicReport struct {
	last  time.Time
	quiet int // panics since
}

// panicSeen is a panic that the machine told of.
type panicSeen struct {
	*recovered.Panic
	more int // panics at the same place in the step
}

// Panicked notes a panic that is being contained, for machine.Options.
func (l *Logger) Panicked(p *recovered.Panic) {
	if seen := l.panics.seen(p.Site); seen != nil {
		seen.more++
		return
	}
	l.panics.step = append(l.panics.step, panicSeen{Panic: p.WithStack()})
}

// seen is the panic at the place in the step under way; nil: there was none.
func (r *panicReports) seen(site string) *panicSeen {
	for i := range r.step {
		if r.step[i].Site == site {
			return &r.step[i]
		}
	}
	return nil
}

// reportPanics logs the panics of the step, once a minute for each place.
func (l *Logger) reportPanics() {
	for _, p := range l.panics.step {
		if before, due := l.panics.due(l.now, p.Site, 1+p.more); due {
			l.logger.Error(p.Panic, "Plugin panicked, its pod will be tried again", "panicsSinceLastReport", before, "stack", p.Stack)
		}
	}
	clear(l.panics.step)
	l.panics.step = l.panics.step[:0]
}

// due counts n panics at the place. It tells whether they are to be reported, and how
// many were not since the last report.
func (r *panicReports) due(now time.Time, site string, n int) (before int, due bool) {
	last, known := r.sites[site]
	if known && now.Sub(last.last) < panicPause {
		last.quiet += n
		r.sites[site] = last
		return 0, false
	}
	r.sites[site] = panicReport{last: now, quiet: n - 1}
	return last.quiet, true
}

// panicked logs an attempt that a panic ended. One that was contained elsewhere, as
// those of hosted plugins are, is reported here, once a minute for each place.
func (l *Logger) panicked(r *decision.Decision, pod klog.ObjectRef, p *recovered.Panic) {
	if l.panics.seen(p.Site) == nil {
		if before, due := l.panics.due(l.now, p.Site, 1); due {
			l.logger.Error(r.Err, "Plugin panicked, retrying the pod", "pod", pod, "attempt", r.Attempt, "panicsSinceLastReport", before, "stack", p.Stack)
			return
		}
	}
	l.logger.V(2).Info("Error scheduling pod; retrying", "err", r.Err, "pod", pod, "attempt", r.Attempt)
}

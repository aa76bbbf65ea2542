package metrics

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/plugins/names"
)

// preemption is what is left of a preemption's evictions.
type preemption struct {
	since  time.Time
	left   int
	failed bool
}

// question names one that an extender was asked.
type question struct {
	uid    types.UID
	number uint64
}

func (m *Metrics) evicting(preemptor types.UID, now time.Time) {
	p := m.evictions[preemptor]
	if p == nil {
		p = &preemption{since: now}
		m.evictions[preemptor] = p
	}
	p.left++
}

func (m *Metrics) evicted(e machine.EvictReply, now time.Time) {
	p := m.evictions[e.Preemptor]
	if p == nil {
		return
	}
	p.failed = p.failed || e.Err != nil
	if p.left--; p.left > 0 {
		return
	}
	delete(m.evictions, e.Preemptor)
	result := "success"
	if p.failed {
		result = failed
	}
	m.evictionRuns.WithLabelValues(result).Inc()
	m.evictionSeconds.WithLabelValues(result).Observe(now.Sub(p.since).Seconds())
}

func (m *Metrics) extenderCalled(e machine.CallExtender) {
	if e.Verb == machine.Prioritize {
		m.scoring[question{e.Pod.UID, e.Call}] = true
	}
}

// Scoring is how many questions for scores are under way, for a Snapshot.
func (m *Metrics) Scoring() int { return len(m.scoring) }

func (m *Metrics) answered(q question) { delete(m.scoring, q) }

// volumeFailed counts a failure of VolumeBinding.
func (m *Metrics) volumeFailed(d *decision.Decision) {
	if d.FailedPlugin != names.VolumeBinding {
		return
	}
	switch d.FailedPoint {
	case "PreFilter", "Filter":
		m.volumeErrors.WithLabelValues("predicate").Inc()
	case "PreBind":
		m.volumeErrors.WithLabelValues("bind").Inc()
	}
}

// errRejected ends the wait of a pod that was rejected meanwhile.
var errRejected = errors.New("rejected")

// waiting takes in that a pod waits for its devices from now on.
func (m *Metrics) waiting(e machine.PublishEvent, now time.Time) {
	if p := m.pods[e.Pod.UID]; p != nil && len(e.WaitedDevices) > 0 {
		p.devices, p.waited = e.WaitedDevices, now
	}
}

// waitEnded counts a wait for devices that is over, if there was one.
func (m *Metrics) waitEnded(p *pod, now time.Time, err error) {
	if p == nil {
		return
	}
	status := "success"
	switch {
	case errors.Is(err, framework.ErrDeviceBindingTimeout):
		status = "timeout"
	case errors.Is(err, framework.ErrDeviceBindingFailed):
		status = "failure"
	case err != nil:
		status = failed
	}
	for _, d := range p.devices {
		m.deviceSeconds.WithLabelValues(p.profile, d.Driver, status).Observe(now.Sub(p.waited).Seconds())
		if d.Conditional {
			m.waitedDevices.WithLabelValues(p.profile, d.Driver, status).Inc()
		}
	}
	p.devices = nil
}

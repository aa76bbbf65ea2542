package metrics

import (
	"time"

	"k8s.io/component-base/metrics"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
)

// groupMetrics are the metrics about pod groups, which are there with the gate
// GenericWorkload.
type groupMetrics struct {
	attempts         *metrics.CounterVec
	attemptSeconds   *metrics.HistogramVec
	algorithmSeconds *metrics.Histogram
}

// Groups adds the metrics about pod groups, before the first step.
func (m *Metrics) Groups(register func(...metrics.Registerable)) {
	g := &m.groups
	g.attempts = counters("podgroup_schedule_attempts_total", metrics.ALPHA,
		"Attempts to schedule a pod group, by result: unschedulable means that it does not fit, error that something failed.", "result", "profile")
	g.attemptSeconds = histograms("podgroup_scheduling_attempt_duration_seconds", metrics.ALPHA, metrics.ExponentialBuckets(0.001, 2, 15),
		"Time of an attempt to schedule a pod group, without the bindings of its pods.", "result", "profile")
	g.algorithmSeconds = histogram("podgroup_scheduling_algorithm_duration_seconds", metrics.ALPHA, metrics.ExponentialBuckets(0.001, 2, 15),
		"Time of the decision on a pod group.")
	register(g.attempts, g.attemptSeconds, g.algorithmSeconds)
}

// groupDone takes in the end of a pod group's cycle, which took all of the step.
func (m *Metrics) groupDone(d machine.PodGroupDone, took time.Duration) {
	g := &m.groups
	if g.attempts == nil {
		return
	}
	result := map[decision.Result]string{
		decision.ResultScheduled: scheduled, decision.ResultUnschedulable: unschedulable,
		decision.ResultPreempting: "waiting_on_preemption", decision.ResultError: failed,
	}[d.Result]
	g.attempts.WithLabelValues(result, d.Profile).Inc()
	g.attemptSeconds.WithLabelValues(result, d.Profile).Observe(took.Seconds())
	g.algorithmSeconds.Observe(took.Seconds())
	if len(d.Victims) > 0 {
		m.preemptionVictims.Observe(float64(len(d.Victims)))
	}
}

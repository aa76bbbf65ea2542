package metrics

import (
	"time"

	"k8s.io/component-base/metrics"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/queue"
)

// groupMetrics are the metrics about pod groups, which are there with the gate
// GenericWorkload.
type groupMetrics struct {
	attempts         *metrics.CounterVec
	attemptSeconds   *metrics.HistogramVec
	algorithmSeconds *metrics.Histogram

	waiting       *metrics.GaugeVec
	placedSeconds *metrics.Histogram
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
	g.waiting = metrics.NewGaugeVec(&metrics.GaugeOpts{Subsystem: berth, Name: "pod_groups_waiting", StabilityLevel: metrics.ALPHA,
		Help: "Pod groups of which pods wait, by queue, and by the plugin that holds back the group (gated) or rejected a pod of it; an empty one for none."}, []string{"queue", "plugin"})
	g.placedSeconds = metrics.NewHistogram(&metrics.HistogramOpts{Subsystem: berth, Name: "pod_group_placement_seconds", StabilityLevel: metrics.ALPHA, Buckets: metrics.ExponentialBuckets(0.01, 2, 20),
		Help: "Time from when a pod of a group could first be tried until the group is placed, over all attempts. Pods that come to a placed group do not count."})
	register(g.attempts, g.attemptSeconds, g.algorithmSeconds, g.waiting, g.placedSeconds)
}

// refresh sets the gauge to the groups that wait.
func (g *groupMetrics) refresh(groups []queue.WaitingGroup) {
	if g.waiting == nil {
		return
	}
	g.waiting.Reset()
	for _, w := range groups {
		if name := queueOf(w.Place); name != "" {
			g.waiting.WithLabelValues(name, w.Plugin).Inc()
		}
	}
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
	if d.Waited > 0 {
		g.placedSeconds.Observe(d.Waited.Seconds())
	}
	if len(d.Victims) > 0 {
		m.preemptionVictims.Observe(float64(len(d.Victims)))
	}
}

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
	oldestSeconds *metrics.GaugeVec
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
	g.oldestSeconds = metrics.NewGaugeVec(&metrics.GaugeOpts{Subsystem: berth, Name: "pod_group_oldest_wait_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Time since a pod of a group could first be tried, of the group in each queue that has waited longest; 0 for none. Groups that are gated do not count."}, []string{"queue"})
	g.placedSeconds = metrics.NewHistogram(&metrics.HistogramOpts{Subsystem: berth, Name: "pod_group_placement_seconds", StabilityLevel: metrics.ALPHA, Buckets: metrics.ExponentialBuckets(0.01, 2, 20),
		Help: "Time from when a pod of a group could first be tried until the group is placed, over all attempts. Pods that come to a placed group do not count."})
	register(g.attempts, g.attemptSeconds, g.algorithmSeconds, g.waiting, g.oldestSeconds, g.placedSeconds)
}

// refresh sets the gauges to the groups that wait at the time now.
func (g *groupMetrics) refresh(groups []queue.WaitingGroup, now time.Time) {
	if g.waiting == nil {
		return
	}
	g.waiting.Reset()
	oldest := map[string]time.Duration{queueOf(queue.Active): 0, queueOf(queue.Backoff): 0, queueOf(queue.Unschedulable): 0}
	for _, w := range groups {
		name := queueOf(w.Place)
		if name != "" {
			g.waiting.WithLabelValues(name, w.Plugin).Inc()
		}
		if longest, counts := oldest[name]; counts && !w.Since.IsZero() {
			oldest[name] = max(longest, now.Sub(w.Since))
		}
	}
	for name, wait := range oldest { // any order: each has its gauge
		g.oldestSeconds.WithLabelValues(name).Set(wait.Seconds())
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

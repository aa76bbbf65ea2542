package metrics

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"

	// These register the metrics of the API client with its work queues, of
	// leader election and of the build.
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"

	"github.com/berth-scheduler/berth/core/machine"
)

// Prefixes of metrics: kube-scheduler's, and those of Berth's own.
const (
	scheduler = "scheduler"
	berth     = "berth"
)

// Metrics are the scheduler's metrics. Observe belongs to the loop's
// goroutine, Refresh to one caller at a time.
type Metrics struct {
	profiles map[string]bool
	pods     map[types.UID]*pod
	last     totals
	watch    stopwatch
	// evictions holds, by preemptor, the preemptions whose evictions are under way.
	evictions map[types.UID]*preemption
	// scoring holds the questions to extenders for scores.
	scoring map[question]bool
	// handling holds the observers of eventSeconds.
	handling map[machine.Change]metrics.ObserverMetric

	attempts           *metrics.CounterVec
	attemptSeconds     *metrics.HistogramVec
	algorithmSeconds   *metrics.Histogram
	podAttempts        *metrics.Histogram
	sliSeconds         *metrics.HistogramVec
	pointSeconds       *metrics.HistogramVec
	permitWaitSeconds  *metrics.HistogramVec
	preemptionAttempts *metrics.Counter
	preemptionVictims  *metrics.Histogram
	queued             queueMetrics
	unschedulable      *metrics.GaugeVec
	cacheSize          *metrics.GaugeVec
	goroutines         *metrics.GaugeVec
	eventSeconds       *metrics.HistogramVec
	pluginSeconds      *metrics.HistogramVec
	hintSeconds        *metrics.HistogramVec
	evaluated          *metrics.CounterVec
	inFlight           *metrics.GaugeVec
	afterFlush         *metrics.Counter
	evictionSeconds    *metrics.HistogramVec
	evictionRuns       *metrics.CounterVec
	volumeErrors       *metrics.CounterVec
	claims             *metrics.CounterVec
	waitedDevices      *metrics.CounterVec
	deviceSeconds      *metrics.HistogramVec
	groups             groupMetrics
	elasticQuotas      quotaMetrics

	unknownBindings *metrics.Counter
	panics          *metrics.CounterVec
	eventsDropped   *metrics.Counter
	patchesFailed   *metrics.Counter
	badObjects      *metrics.Counter
	rewinds, undone *metrics.Counter
	auditRepairs    *metrics.Counter
	heldBack        *metrics.Counter // preemptions
	overcommits     *metrics.Counter // pods
	overcommitted   *metrics.Gauge   // nodes
	stepSeconds     *metrics.Gauge
	longestSeconds  *metrics.Gauge
	server          serverMetrics
	config          configMetrics
	hosted          *metrics.GaugeVec // calls of hosted plugins that have not returned
}

// queueMetrics are about what waits. Entities are what is scheduled as one: pods alone, and
// pod groups.
type queueMetrics struct {
	pods, entities                 *metrics.GaugeVec
	incomingPods, incomingEntities *metrics.CounterVec
}

// configMetrics are about configurations that come while the scheduler runs.
type configMetrics struct {
	reloads *metrics.CounterVec
	refused *metrics.Gauge
}

// serverMetrics are about the API server.
type serverMetrics struct {
	behind   *metrics.Gauge // watches
	unlisted *metrics.GaugeVec
	skew     *metrics.GaugeVec
}

// New registers, through register, the metrics of a scheduler that has the given profiles.
func New(register func(...metrics.Registerable), profiles []string) *Metrics {
	m := &Metrics{
		profiles: map[string]bool{}, pods: map[types.UID]*pod{}, watch: newStopwatch(),
		evictions: map[types.UID]*preemption{}, scoring: map[question]bool{}, handling: map[machine.Change]metrics.ObserverMetric{},
	}
	for _, p := range profiles {
		m.profiles[p] = true
	}
	m.attempt()
	m.queue()
	m.plugins()
	m.own()
	m.elasticQuotas = newQuotaMetrics()
	register(m.attempts, m.attemptSeconds, m.algorithmSeconds, m.podAttempts, m.sliSeconds,
		m.pointSeconds, m.permitWaitSeconds, m.preemptionAttempts, m.preemptionVictims,
		m.queued.pods, m.queued.incomingPods, m.queued.entities, m.queued.incomingEntities, m.unschedulable, m.cacheSize, m.goroutines,
		m.eventSeconds, m.pluginSeconds, m.hintSeconds, m.evaluated, m.inFlight, m.afterFlush,
		m.evictionSeconds, m.evictionRuns, m.volumeErrors, m.claims, m.waitedDevices, m.deviceSeconds,
		m.unknownBindings, m.panics, m.eventsDropped, m.patchesFailed, m.badObjects, m.rewinds, m.undone, m.auditRepairs, m.heldBack, m.overcommits, m.overcommitted, m.stepSeconds, m.longestSeconds, m.server.behind, m.server.unlisted, m.server.skew, m.hosted, m.config.reloads, m.config.refused,
		m.elasticQuotas.amounts, m.elasticQuotas.reclaimed)
	for _, result := range []string{"applied", "refused"} { // so that the first of each is an increase
		m.config.reloads.WithLabelValues(result)
	}
	return m
}

// attempt makes the metrics that are fed from attempts and their outcomes.
func (m *Metrics) attempt() {
	m.attempts = counters("schedule_attempts_total", metrics.STABLE,
		"Attempts to schedule a pod, by result: unschedulable means that no node takes it, error that something failed.", "result", "profile")
	m.attemptSeconds = histograms("scheduling_attempt_duration_seconds", metrics.STABLE, metrics.ExponentialBuckets(0.001, 2, 15),
		"Time of an attempt to schedule a pod: decision and binding.", "result", "profile")
	m.algorithmSeconds = histogram("scheduling_algorithm_duration_seconds", metrics.BETA, metrics.ExponentialBuckets(0.001, 2, 15),
		"Time of the decision on a pod that was placed.")
	m.podAttempts = histogram("pod_scheduling_attempts", metrics.STABLE, metrics.ExponentialBuckets(1, 2, 5),
		"Attempts that it took until a pod was scheduled.")
	m.sliSeconds = histograms("pod_scheduling_sli_duration_seconds", metrics.BETA, metrics.ExponentialBuckets(0.01, 2, 20),
		"Time from a pod's arrival in the queue until it is bound, over all attempts.", "attempts")
	m.pointSeconds = histograms("framework_extension_point_duration_seconds", metrics.STABLE, metrics.ExponentialBuckets(0.0001, 2, 12),
		"Time of all plugins of an extension point, all nodes together. Bind and PreBind: of each pod, the API's time included. Others: in one step of ten.", "extension_point", "status", "profile")
	m.permitWaitSeconds = histograms("permit_wait_duration_seconds", metrics.BETA, metrics.ExponentialBuckets(0.001, 2, 15),
		"Time that a pod was held by Permit plugins.", "result")
	m.preemptionAttempts = counter(scheduler, "preemption_attempts_total", metrics.STABLE,
		"Attempts in which preemption was tried, whether or not it found a node.")
	m.preemptionVictims = histogram("preemption_victims", metrics.STABLE, metrics.ExponentialBuckets(1, 2, 7),
		"Victims of a preemption.")
	m.evictionSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{Subsystem: scheduler, Name: "preemption_goroutines_duration_seconds", StabilityLevel: metrics.ALPHA, DeprecatedVersion: "1.37.0",
		Help: "Time from a preemption until the API has answered to all its evictions.", Buckets: metrics.ExponentialBuckets(0.01, 2, 20)}, []string{"result"})
	m.evictionRuns = counters("preemption_goroutines_execution_total", metrics.ALPHA, "Preemptions whose evictions the API has answered to.", "result")
	m.afterFlush = counter(scheduler, "pod_scheduled_after_flush_total", metrics.ALPHA,
		"Pods that were placed though no event had called them: their stay among the unschedulable was over.")
}

// queue makes the metrics of what waits and what is known.
func (m *Metrics) queue() {
	m.queued.pods = gauges("pending_pods", metrics.STABLE, "Pods that wait, by queue.", "queue")
	m.queued.incomingPods = counters("queue_incoming_pods_total", metrics.STABLE, "Pods that came to a queue, by the event that brought them.", "queue", "event")
	m.queued.entities = gauges("queued_entities", metrics.ALPHA, "What waits and is scheduled as one, by queue: pods, and pod groups.", "queue", "type")
	m.queued.incomingEntities = counters("queue_incoming_entities_total", metrics.ALPHA, "What came to a queue and is scheduled as one, by the event that brought it: pods, and pod groups.", "queue", "event", "type")
	m.unschedulable = gauges("unschedulable_pods", metrics.BETA,
		"Pods that a plugin rejected at their last attempt. A pod counts for each plugin that did.", "plugin", "profile")
	m.cacheSize = gauges("cache_size", metrics.ALPHA, "Nodes, pods on nodes, and among these pods that the API has not confirmed yet.", "type")
	m.eventSeconds = histograms("event_handling_duration_seconds", metrics.ALPHA, metrics.ExponentialBuckets(0.0001, 2, 12),
		"Time to take in a change in the cluster.", "event")
	m.inFlight = gauges("inflight_events", metrics.ALPHA, "Pods in flight (PodPopped), and changes that are kept for them.", "event")
	m.goroutines = gauges("goroutines", metrics.BETA, "Work under way beside the decisions.", "operation")
}

// plugins makes the metrics of single plugins and hints.
func (m *Metrics) plugins() {
	small := metrics.ExponentialBuckets(0.00001, 1.5, 20)
	m.pluginSeconds = histograms("plugin_execution_duration_seconds", metrics.BETA, small,
		"Time of a plugin at an extension point in one step, all nodes together; one step of ten is timed.", "plugin", "extension_point", "status")
	m.hintSeconds = histograms("queueing_hint_execution_duration_seconds", metrics.ALPHA, small,
		"Time of a plugin's hint, the first of a step; one step of ten is timed.", "plugin", "event", "hint")
	m.evaluated = counters("plugin_evaluation_total", metrics.BETA,
		"Pods that a plugin looked at (PreFilter, PreScore), or nodes for them (Filter, Score). Answers that were kept are not counted.", "plugin", "extension_point", "profile")
	m.claims = metrics.NewCounterVec(&metrics.CounterOpts{Subsystem: "dynamic_resource_allocation", Name: "resourceclaim_creates_total", StabilityLevel: metrics.ALPHA,
		Help: "Claims that were, or could not be, made for pods' extended resources."}, []string{"status", "admin_access", "owner_api_group", "owner_api_kind"})
	m.waitedDevices = counters("dra_bindingconditions_allocations_total", metrics.ALPHA, "Devices with binding conditions that pods waited for, by how the wait ended.", "profile", "driver", "status")
	m.deviceSeconds = histograms("dra_bindingconditions_wait_duration_seconds", metrics.ALPHA, metrics.ExponentialBuckets(0.1, 2, 14),
		"Time that a pod waited for the binding conditions of its devices, once for each of its devices.", "profile", "driver", "status")
	m.volumeErrors = metrics.NewCounterVec(&metrics.CounterOpts{Subsystem: "scheduler_volume", Name: "scheduling_stage_error_total", StabilityLevel: metrics.ALPHA,
		Help: "Errors about volumes: predicate (whether and where they fit), bind (their writes)."}, []string{"operation"})
}

// own makes the metrics that only Berth has.
func (m *Metrics) own() {
	m.unknownBindings = counter(berth, "bindings_unknown_total", metrics.ALPHA, "Bindings whose reply was lost; a read of the pod tells.")
	m.panics = metrics.NewCounterVec(&metrics.CounterOpts{Subsystem: berth, Name: "panics_total", StabilityLevel: metrics.ALPHA,
		Help: "Panics that were contained, by where: plugin (the pod at hand backs off), hint (the pod is requeued), loop (the event is tried again)."}, []string{"where"})
	m.eventsDropped = counter(berth, "events_dropped_total", metrics.ALPHA, "API events that were not published, because too many waited or the API refused.")
	m.patchesFailed = counter(berth, "status_patches_failed_total", metrics.ALPHA, "Patches of a pod's status that failed.")
	m.stepSeconds = metrics.NewGauge(&metrics.GaugeOpts{Subsystem: berth, Name: "loop_step_age_seconds", StabilityLevel: metrics.ALPHA,
		Help: "How long the scheduling loop has been at its present step, to the second; 0 where that is short. A loop that is stuck fails /livez."})
	m.longestSeconds = metrics.NewGauge(&metrics.GaugeOpts{Subsystem: berth, Name: "loop_longest_step_seconds", StabilityLevel: metrics.ALPHA,
		Help: "The longest step of the scheduling loop since the start, or the longest look at what it knows. No pod is scheduled meanwhile."})
	m.server.behind = metrics.NewGauge(&metrics.GaugeOpts{Subsystem: berth, Name: "watches_behind", StabilityLevel: metrics.ALPHA,
		Help: "Kinds of objects whose watch has not shown the writes of the former leader yet. A new leader schedules no pod until there is none; /readyz names them."})
	m.server.unlisted = metrics.NewGaugeVec(&metrics.GaugeOpts{Subsystem: berth, Name: "unlisted_kinds", StabilityLevel: metrics.ALPHA,
		Help: "1 for each kind of objects that cannot be listed, or is not served. Pods that need it are not scheduled; /readyz/missing says why."}, []string{"resource"})
	m.server.skew = metrics.NewGaugeVec(&metrics.GaugeOpts{Subsystem: berth, Name: "api_server_version_skew", StabilityLevel: metrics.ALPHA,
		Help: "By how many minor versions the API server is newer than the one that Berth is built for. -1, 0 and 1 are supported; a negative value is an API server that is older."}, []string{"version"})
	m.hosted = metrics.NewGaugeVec(&metrics.GaugeOpts{Subsystem: berth, Name: "plugin_calls_running", StabilityLevel: metrics.ALPHA,
		Help: "Calls of plugins written against kube-scheduler's framework that have not returned: those of PreBind (prebind), whose pods stay assumed, and those that took too long (late), which nothing waits for any more."}, []string{"call"})
	m.config.reloads = metrics.NewCounterVec(&metrics.CounterOpts{Subsystem: berth, Name: "config_reloads_total", StabilityLevel: metrics.ALPHA,
		Help: "Configurations that were taken over while the scheduler ran (applied), or refused as a whole (refused)."}, []string{"result"})
	m.config.refused = metrics.NewGauge(&metrics.GaugeOpts{Subsystem: berth, Name: "config_refused", StabilityLevel: metrics.ALPHA,
		Help: "1 while the configuration that was read last is refused and the one before stays in effect, else 0."})
	m.badObjects = counter(berth, "bad_objects_total", metrics.ALPHA, "API objects that could not be decoded.")
	m.rewinds = counter(berth, "api_rewinds_total", metrics.ALPHA, "Lists that showed an older state than was seen before, as etcd was restored from a backup.")
	m.auditRepairs = counter(berth, "audit_repairs_total", metrics.ALPHA, "Objects that differed between the cache (of a watch, or the scheduler's tables and queue) and the API server, and were listed again. All are compared every ten minutes.")
	m.heldBack = counter(berth, "preemptions_held_back_total", metrics.ALPHA, "Attempts in which a pod could have preempted others and was held back, as ten preemptions in a row had not placed it.")
	m.overcommits = counter(berth, "overcommits_total", metrics.ALPHA, "Pods that were bound, by whomever, to a node that had no room for them, since this process first decided. Two schedulers that decide at the same moment do that.")
	m.overcommitted = metrics.NewGauge(&metrics.GaugeOpts{Subsystem: berth, Name: "overcommitted_nodes", StabilityLevel: metrics.ALPHA,
		Help: "Nodes whose bound pods request more than they offer. No further pod is placed there."})
	m.undone = counter(berth, "bindings_undone_total", metrics.ALPHA, "Bindings that were done and that the API undid, as etcd was restored from a backup.")
}

// Reloaded counts a configuration that was taken over, or refused.
func (m *Metrics) Reloaded(applied bool) {
	result := "refused"
	m.config.refused.Set(1)
	if applied {
		result = "applied"
		m.config.refused.Set(0)
	}
	m.config.reloads.WithLabelValues(result).Inc()
}

func counter(subsystem, name string, level metrics.StabilityLevel, help string) *metrics.Counter {
	return metrics.NewCounter(&metrics.CounterOpts{Subsystem: subsystem, Name: name, Help: help, StabilityLevel: level})
}

func counters(name string, level metrics.StabilityLevel, help string, labels ...string) *metrics.CounterVec {
	return metrics.NewCounterVec(&metrics.CounterOpts{Subsystem: scheduler, Name: name, Help: help, StabilityLevel: level}, labels)
}

func gauges(name string, level metrics.StabilityLevel, help string, labels ...string) *metrics.GaugeVec {
	return metrics.NewGaugeVec(&metrics.GaugeOpts{Subsystem: scheduler, Name: name, Help: help, StabilityLevel: level}, labels)
}

func histogram(name string, level metrics.StabilityLevel, buckets []float64, help string) *metrics.Histogram {
	return metrics.NewHistogram(&metrics.HistogramOpts{Subsystem: scheduler, Name: name, Help: help, StabilityLevel: level, Buckets: buckets})
}

func histograms(name string, level metrics.StabilityLevel, buckets []float64, help string, labels ...string) *metrics.HistogramVec {
	return metrics.NewHistogramVec(&metrics.HistogramOpts{Subsystem: scheduler, Name: name, Help: help, StabilityLevel: level, Buckets: buckets}, labels)
}

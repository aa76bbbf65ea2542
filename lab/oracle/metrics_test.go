package oracle

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	upstream "k8s.io/kubernetes/pkg/scheduler/metrics"

	berth "github.com/berth-scheduler/berth/edge/metrics"
)

// without are kube-scheduler's metrics that Berth does not have: docs/deviations-daemon.md
// says why.
var without = []string{
	"scheduler_batch_attempts_total", "scheduler_batch_cache_flushed_total",
	"scheduler_get_node_hint_duration_seconds", "scheduler_store_schedule_results_duration_seconds",
	"scheduler_volume_binder_cache_requests_total",
}

// Every metric of kube-scheduler that Berth is to have has the same labels, the
// same stability, the same type and the same buckets.
func TestMetricsAreUpstreams(t *testing.T) {
	defer Under(map[string]bool{"GenericWorkload": true})() // kube-scheduler registers its metrics once
	upstream.Register()
	theirs, shapes := described(legacyregistry.Registerer()), touchUpstream(t)
	registry := metrics.NewKubeRegistry()
	var own []metrics.Registerable
	register := func(r ...metrics.Registerable) { own = append(own, r...); registry.MustRegister(r...) }
	berth.New(register, []string{"p"}).Groups(register)
	ours := described(registry.Registerer())
	for _, r := range own {
		touch(r, ours[r.FQName()].labels)
	}
	mine := gathered(t, registry)

	for name, want := range theirs {
		got, there := ours[name]
		switch skipped := slices.Contains(without, name); {
		case !strings.HasPrefix(name, "scheduler_"):
		case there == skipped:
			t.Errorf("%s: there is %v, left out %v", name, there, skipped)
		case there && (got.stability != want.stability || !slices.Equal(got.labels, want.labels)):
			t.Errorf("%s: %+v, want %+v", name, got, want)
		case there && shapes[name] != "" && mine[name] != shapes[name]:
			t.Errorf("%s: %s, want %s", name, mine[name], shapes[name])
		case there && shapes[name] == "" && name != "scheduler_volume_scheduling_stage_error_total":
			t.Errorf("%s: the test does not know its shape", name)
		}
	}
}

type description struct {
	stability string
	labels    []string
}

var desc = regexp.MustCompile(`fqName: "([^"]*)", help: "\[(\w+)\].*variableLabels: \{(.*)\}\}$`)

func described(r prometheus.Registerer) map[string]description {
	ch := make(chan *prometheus.Desc, 1000)
	r.(prometheus.Collector).Describe(ch)
	close(ch)
	all := map[string]description{}
	for d := range ch {
		if m := desc.FindStringSubmatch(d.String()); m != nil {
			var labels []string
			if m[3] != "" {
				labels = strings.Split(m[3], ",")
			}
			all[m[1]] = description{m[2], labels}
		}
	}
	return all
}

// touch gives a metric a series.
func touch(r metrics.Registerable, labels []string) {
	values := slices.Repeat([]string{"x"}, len(labels))
	switch m := r.(type) {
	case *metrics.CounterVec:
		m.WithLabelValues(values...).Inc()
	case *metrics.GaugeVec:
		m.WithLabelValues(values...).Inc()
	case *metrics.HistogramVec:
		m.WithLabelValues(values...).Observe(1)
	}
}

// touchUpstream gives kube-scheduler's metrics a series and returns their shapes.
func touchUpstream(t *testing.T) map[string]string {
	upstream.PodScheduled("p", 1)
	upstream.PodGroupScheduled("p", 1)
	upstream.PodGroupSchedulingAlgorithmLatency.Observe(1)
	upstream.ActivePods().Inc()
	upstream.UnschedulableReason("p", "p").Inc()
	stop := make(chan struct{})
	recorder := upstream.NewMetricsAsyncRecorder(10, time.Hour, stop)
	recorder.ObserveQueueingHintDurationAsync("p", "e", "h", 1)
	recorder.FlushMetrics()
	close(stop)
	for _, m := range []metrics.Registerable{
		upstream.EventHandlingLatency, upstream.InFlightEvents, upstream.Goroutines, upstream.PodSchedulingSLIDuration,
		upstream.FrameworkExtensionPointDuration, upstream.PluginExecutionDuration, upstream.SchedulerQueueIncomingPods,
		upstream.PermitWaitDuration, upstream.CacheSize, upstream.PluginEvaluationTotal,
		upstream.ResourceClaimCreatesTotal, upstream.DRABindingConditionsAllocationsTotal, upstream.DRABindingConditionsPreBindDuration,
		upstream.PreemptionGoroutinesDuration, upstream.PreemptionGoroutinesExecutionTotal,
	} {
		touch(m, described(legacyregistry.Registerer())[m.FQName()].labels)
	}
	return gathered(t, legacyregistry.DefaultGatherer)
}

// gathered is the type and the buckets of each metric that has a series.
func gathered(t *testing.T, from metrics.Gatherer) map[string]string {
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	shapes := map[string]string{}
	for _, f := range families {
		shape := f.GetType().String()
		if shape == "HISTOGRAM" {
			for _, b := range f.GetMetric()[0].GetHistogram().GetBucket() {
				shape += fmt.Sprintf(" %g", b.GetUpperBound())
			}
		}
		shapes[f.GetName()] = shape
	}
	return shapes
}

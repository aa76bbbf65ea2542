package metrics

import (
	"errors"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/loop"
)

// cluster is a machine whose steps are measured, each of them if always is set.
type cluster struct {
	*story
	machine  *machine.Machine
	registry metrics.KubeRegistry
}

func newCluster(t *testing.T, always bool) *cluster {
	t.Helper()
	s, registry := newStory(t)
	profiles, err := profile.BuildAll(config.Profiles(config.Default()), plugins.Registry(features.Plugins(features.New())))
	if err != nil {
		t.Fatal(err)
	}
	s.Time(profiles)
	s.watch.chance = func() bool { return always }
	s.watch.on = always
	// The check asks plugins, too, and would count.
	return &cluster{s, machine.New(machine.Options{Profiles: profiles, Workers: 1, Check: always}), registry}
}

func (c *cluster) tell(e machine.Event) {
	c.now = c.now.Add(time.Second)
	effects := c.machine.Step(c.now, e)
	c.Observe(loop.Step{Now: c.now, Event: e, Effects: effects, Took: time.Millisecond}, c.machine.Changed())
}

func (c *cluster) node(name, cpu string) {
	c.tell(machine.NodeSet{Node: decode.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("10")}}})})
}

func (c *cluster) pod(name, cpu string) {
	c.tell(machine.PodSet{Pod: decode.Pod(apiPod(name, cpu, ""))})
}

func apiPod(name, cpu, node string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec: v1.PodSpec{SchedulerName: "default-scheduler", NodeName: node, Containers: []v1.Container{{Name: "c"}}}}
	p.Spec.Containers[0].Resources.Requests = v1.ResourceList{"cpu": resource.MustParse(cpu)}
	p.Spec.Containers[0].Resources.Limits = v1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("64Mi")}
	return p
}

// series lists the series of a metric as "label=value label=value".
func (c *cluster) series(t *testing.T, name string) []string {
	t.Helper()
	families, err := c.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			all = append(all, strings.Join(labels, " "))
		}
	}
	return all
}

func contains(t *testing.T, name string, series []string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !slices.Contains(series, w) {
			t.Errorf("%s lacks %q; it has %q", name, w, series)
		}
	}
}

// A pod that fits nowhere, a node that comes, a pod that is placed: all that is
// timed has moved.
func TestPluginsAreTimed(t *testing.T) {
	c := newCluster(t, true)
	c.node("small", "1")
	c.pod("large", "4")
	c.tell(machine.ScheduleOne{})
	c.node("big", "8")
	c.tell(machine.Tick{})
	c.tell(machine.ScheduleOne{})
	c.Refresh(Snapshot{EventsInFlight: c.machine.Queue().EventsInFlight()})

	points := "scheduler_framework_extension_point_duration_seconds"
	contains(t, points, c.series(t, points),
		"extension_point=PreEnqueue profile=default-scheduler status=Success",
		"extension_point=PreFilter profile=default-scheduler status=Success",
		"extension_point=Filter profile=default-scheduler status=Success",
		"extension_point=PostFilter profile=default-scheduler status=Unschedulable",
		"extension_point=PreScore profile=default-scheduler status=Success",
		"extension_point=Score profile=default-scheduler status=Success",
		"extension_point=Reserve profile=default-scheduler status=Success")
	plugin := "scheduler_plugin_execution_duration_seconds"
	contains(t, plugin, c.series(t, plugin),
		"extension_point=PreFilter plugin=NodeResourcesFit status=Success",
		"extension_point=PreFilter plugin=NodePorts status=Skip",
		"extension_point=Filter plugin=NodeResourcesFit status=Success",
		"extension_point=PostFilter plugin=DefaultPreemption status=Unschedulable",
		"extension_point=Score plugin=ImageLocality status=Success")
	hints := "scheduler_queueing_hint_execution_duration_seconds"
	contains(t, hints, c.series(t, hints), "event=NodeAdd hint=Queue plugin=NodeResourcesFit")
	events := "scheduler_event_handling_duration_seconds"
	contains(t, events, c.series(t, events), "event=NodeAdd", "event=UnscheduledPodAdd")
	evaluated := "scheduler_plugin_evaluation_total"
	contains(t, evaluated, c.series(t, evaluated),
		"extension_point=PreFilter plugin=NodeResourcesFit profile=default-scheduler",
		"extension_point=Filter plugin=NodeResourcesFit profile=default-scheduler")
	inFlight := "scheduler_inflight_events"
	contains(t, inFlight, c.series(t, inFlight), "event=PodPopped")
}

// In a step that is not timed no clock is read, but evaluations count.
func TestMostStepsAreNotTimed(t *testing.T) {
	c := newCluster(t, false)
	c.node("big", "8")
	c.pod("a", "1")
	c.tell(machine.ScheduleOne{})
	c.Refresh(Snapshot{})
	for _, name := range []string{"scheduler_plugin_execution_duration_seconds", "scheduler_framework_extension_point_duration_seconds"} {
		if series := c.series(t, name); len(series) > 0 {
			t.Errorf("%s: %q", name, series)
		}
	}
	n, err := testutil.GetCounterMetricValue(c.evaluated.WithLabelValues("NodeResourcesFit", "PreFilter", "default-scheduler"))
	if err != nil || n != 1 {
		t.Errorf("PreFilter ran %v times (%v), want 1", n, err)
	}
	if got := newStopwatch(); got.chance == nil {
		t.Error("no step would ever be timed")
	}
}

// The pod is held, written for, and bound; a preemption's evictions end; an
// extender is asked for scores; a volume cannot be bound.
func TestOutcomes(t *testing.T) {
	s, registry := newStory(t)
	a, v, w := pending("a"), pending("v"), pending("w")
	s.step(machine.PodSet{Pod: a})
	s.step(machine.ScheduleOne{}, s.decide(decision.Decision{UID: "a", Attempt: 1, Flushed: true, Result: decision.ResultScheduled}), machine.Write{Pod: a, Writes: []framework.Write{{}, {Create: &resourcev1.ResourceClaim{}}}})
	s.now = s.now.Add(3 * time.Second)
	s.step(machine.WriteReply{UID: "a", Done: 2}, machine.Bind{Pod: a})
	s.step(machine.BindReply{UID: "a"})
	s.step(machine.PodSet{Pod: v})
	claim := machine.Write{Pod: v, Writes: []framework.Write{{}, {Create: &resourcev1.ResourceClaim{}}, {}}}
	for _, done := range []int{0, 1, 2} { // before it, at it, behind it
		s.step(machine.ScheduleOne{}, claim)
		s.step(machine.WriteReply{UID: "v", Done: done, Err: errors.New("no")})
	}
	s.step(machine.ScheduleOne{}, s.decide(decision.Decision{UID: "v", Attempt: 1, Result: decision.ResultError, FailedPoint: "PreBind", FailedPlugin: "VolumeBinding", Err: errors.New(`running PreBind plugin "VolumeBinding": no`)}))

	s.step(machine.ScheduleOne{}, machine.Evict{Victim: v, Preemptor: a}, machine.Evict{Victim: w, Preemptor: a})
	s.step(machine.EvictReply{Victim: "v", Preemptor: "a", Err: errors.New("no")})
	s.step(machine.EvictReply{Victim: "w", Preemptor: "a"})
	s.step(machine.ScheduleOne{}, machine.CallExtender{Pod: a, Call: 7, Verb: machine.Prioritize}, machine.CallExtender{Pod: a, Call: 8, Verb: machine.Filter})
	asked := s.Scoring()
	s.step(machine.ExtenderReply{UID: "a", Call: 7})
	if len(s.evictions) != 0 || asked != 1 || s.Scoring() != 0 {
		t.Errorf("still remembered: %v, %d questions for scores, then %d", s.evictions, asked, s.Scoring())
	}
	s.change = machine.Change{Resource: framework.Node, Action: framework.Add}
	s.step(machine.NodeSet{})
	s.change = machine.Change{Resource: framework.AssignedPod, Action: framework.Delete}
	s.step(machine.BindReply{}) // an outcome, no event of the cluster
	expect(t, registry, `
# HELP scheduler_pod_scheduled_after_flush_total [ALPHA] Pods that were placed though no event had called them: their stay among the unschedulable was over.
# TYPE scheduler_pod_scheduled_after_flush_total counter
scheduler_pod_scheduled_after_flush_total 1
# HELP scheduler_preemption_goroutines_execution_total [ALPHA] Preemptions whose evictions the API has answered to.
# TYPE scheduler_preemption_goroutines_execution_total counter
scheduler_preemption_goroutines_execution_total{result="error"} 1
# HELP dynamic_resource_allocation_resourceclaim_creates_total [ALPHA] Claims that were, or could not be, made for pods' extended resources.
# TYPE dynamic_resource_allocation_resourceclaim_creates_total counter
dynamic_resource_allocation_resourceclaim_creates_total{admin_access="false",owner_api_group="",owner_api_kind="Pod",status="failure"} 1
dynamic_resource_allocation_resourceclaim_creates_total{admin_access="false",owner_api_group="",owner_api_kind="Pod",status="success"} 2
# HELP scheduler_volume_scheduling_stage_error_total [ALPHA] Errors about volumes: predicate (whether and where they fit), bind (their writes).
# TYPE scheduler_volume_scheduling_stage_error_total counter
scheduler_volume_scheduling_stage_error_total{operation="bind"} 1
`, "scheduler_pod_scheduled_after_flush_total", "scheduler_preemption_goroutines_execution_total", "dynamic_resource_allocation_resourceclaim_creates_total", "scheduler_volume_scheduling_stage_error_total")
	if seconds, err := testutil.GetHistogramMetricValue(s.pointSeconds.WithLabelValues("PreBind", "Success", "default-scheduler")); err != nil || seconds != 3 {
		t.Errorf("PreBind took %v s (%v), want 3", seconds, err)
	}
	if len(s.handling) != 1 {
		t.Errorf("events: %v, want NodeAdd alone", s.handling)
	}
}

// /metrics/resources has the requests and limits of each pod that has not ended, with
// its node if it is bound.
func TestResources(t *testing.T) {
	c := newCluster(t, false)
	c.node("n", "8")
	c.tell(machine.PodSet{Pod: decode.Pod(apiPod("bound", "1500m", "n"))})
	c.pod("assumed", "1")
	c.tell(machine.ScheduleOne{}) // placed in memory: both in the queue and in the table
	c.pod("waits", "1")
	done := apiPod("done", "1", "n")
	done.Status.Phase = v1.PodSucceeded
	c.tell(machine.PodSet{Pod: decode.Pod(done)})

	r := httptest.NewRecorder()
	Resources(c.machine.Pods).ServeHTTP(r, httptest.NewRequest("GET", "/metrics/resources", nil))
	body, _ := io.ReadAll(r.Body)
	var got []string
	for line := range strings.Lines(string(body)) {
		if !strings.HasPrefix(line, "#") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	var want []string
	for _, s := range []struct{ metric, pod, node, resource, unit, value string }{
		{"limit", "assumed", "", "cpu", "cores", "2"},
		{"limit", "assumed", "", "memory", "bytes", "6.7108864e+07"},
		{"limit", "bound", "n", "cpu", "cores", "2"},
		{"limit", "bound", "n", "memory", "bytes", "6.7108864e+07"},
		{"limit", "waits", "", "cpu", "cores", "2"},
		{"limit", "waits", "", "memory", "bytes", "6.7108864e+07"},
		{"request", "assumed", "", "cpu", "cores", "1"},
		{"request", "bound", "n", "cpu", "cores", "1.5"},
		{"request", "waits", "", "cpu", "cores", "1"},
	} {
		want = append(want, `kube_pod_resource_`+s.metric+`{namespace="ns",node="`+s.node+`",pod="`+s.pod+
			`",priority="0",resource="`+s.resource+`",scheduler="default-scheduler",unit="`+s.unit+`"} `+s.value)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A call that is not timed costs nothing, and one that was asked to be timed says when
// it was.
func TestTimeStep(t *testing.T) {
	w := stopwatch{chance: func() bool { return false }}
	l := &lap{point: "Filter", plugin: "P"}
	w.laps = []*lap{l}
	called := 0
	f := func() { called++ }
	if n := testing.AllocsPerRun(100, func() { w.kernel(l, f) }); n != 0 || l.calls.Load() != 0 || called == 0 {
		t.Errorf("%v allocations, %d calls timed", n, l.calls.Load())
	}
	m := &Metrics{watch: w}
	m.watch.laps = w.laps
	m.TimeStep()
	before := time.Now().UnixNano()
	m.watch.kernel(l, f)
	m.watch.kernel(l, f)
	after := time.Now().UnixNano()
	laps := m.Laps()
	if len(laps) != 1 || laps[0].Point != "Filter" || laps[0].Plugin != "P" || laps[0].Calls != 2 {
		t.Fatalf("%+v", laps)
	}
	first, last := laps[0].First.UnixNano(), laps[0].Last.UnixNano()
	if first < before || last > after || first > last || laps[0].Took > time.Duration(last-first) {
		t.Errorf("from %d to %d, within %d and %d: %+v", first, last, before, after, laps[0])
	}
}

// Calls on several cores at once widen the time in any order.
func TestLapsFromSeveralCores(t *testing.T) {
	l := &lap{}
	for _, x := range [][2]int64{{5, 6}, {3, 4}, {8, 9}, {7, 8}} {
		l.during(x[0], x[1])
	}
	if l.first.Load() != 3 || l.last.Load() != 9 {
		t.Errorf("from %d to %d", l.first.Load(), l.last.Load())
	}
}

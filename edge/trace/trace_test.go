package trace

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	basemetrics "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/loop"
	"github.com/berth-scheduler/berth/edge/metrics"
)

// world is a traced machine.
type world struct {
	testing.TB
	t   *Tracer
	now time.Time
	// timed counts the steps that were to be timed.
	timed int
	m     *metrics.Metrics
}

func (w *world) TimeStep() {
	w.timed++
	w.m.TimeStep()
}

func (w *world) Laps() []metrics.Lap { return w.m.Laps() }

func newWorld(t testing.TB, p trace.TracerProvider) *world { t.Helper(); return newWorldOf(t, p, true) }

func newWorldOf(t testing.TB, p trace.TracerProvider, check bool) *world {
	t.Helper()
	if p == nil {
		p = benchmarkProvider(false) // not used
	}
	profiles, err := profile.BuildAll(config.Profiles(config.Default()), plugins.Registry(features.Plugins(features.New())))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, now: time.Now()}
	w.m = metrics.New(basemetrics.NewKubeRegistry().MustRegister, []string{v1.DefaultSchedulerName})
	w.m.Time(profiles)
	m := machine.New(machine.Options{Profiles: profiles, Seed: 1, Workers: 1, Check: check,
		InitialBackoff: time.Second, MaxBackoff: time.Second, MaxUnschedulable: time.Minute})
	w.t = New(m, p, w)
	w.step(machine.NodeSet{Node: decode.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("8Gi"), v1.ResourcePods: resource.MustParse("10")}}})})
	w.step(machine.NodeSet{Node: decode.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("8Gi"), v1.ResourcePods: resource.MustParse("10")}}})})
	return w
}

// recorded is a provider that samples all, and what it ended.
func recorded() (*sdktrace.TracerProvider, *tracetest.InMemoryExporter) {
	e := tracetest.NewInMemoryExporter()
	return sdktrace.NewTracerProvider(sdktrace.WithSyncer(e)), e
}

func (w *world) step(e machine.Event) []machine.Effect { return w.t.Step(w.now, e) }

// attempt creates a pod and decides on it.
func (w *world) attempt(name, cpu string) []machine.Effect {
	w.step(machine.PodSet{Pod: decode.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec: v1.PodSpec{SchedulerName: v1.DefaultSchedulerName, Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}}}}}})})
	w.now = w.now.Add(time.Millisecond)
	return w.step(machine.ScheduleOne{})
}

// tree prints the spans as paths from the root, sorted, each once.
func tree(spans tracetest.SpanStubs) []string {
	byID := map[trace.SpanID]*tracetest.SpanStub{}
	for i := range spans {
		byID[spans[i].SpanContext.SpanID()] = &spans[i]
	}
	var paths []string
	for i := range spans {
		path := ""
		for s := &spans[i]; s != nil; s = byID[s.Parent.SpanID()] {
			path = "/" + s.Name + path
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func find(t *testing.T, spans tracetest.SpanStubs, name string) *tracetest.SpanStub {
	t.Helper()
	for i := range spans {
		if spans[i].Name == name {
			return &spans[i]
		}
	}
	t.Fatalf("no span %s among %q", name, tree(spans))
	return nil
}

func attributeOf(s *tracetest.SpanStub, key string) string {
	for _, a := range s.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// An attempt that places its pod: from the queue to the reply to the binding.
func TestBoundPod(t *testing.T) {
	p, e := recorded()
	w := newWorld(t, p)
	effects := w.attempt("p", "1")
	if !slices.ContainsFunc(effects, func(e machine.Effect) bool { _, is := e.(machine.Bind); return is }) {
		t.Fatalf("no binding: %v", effects)
	}
	if len(tree(e.GetSpans())) == 0 || slices.Contains(tree(e.GetSpans()), "/SchedulingAttempt") {
		t.Errorf("before the reply: %q", tree(e.GetSpans()))
	}
	w.step(machine.BindReply{UID: "p"})
	got := tree(e.GetSpans())
	for _, want := range []string{
		"/SchedulingAttempt", "/SchedulingAttempt/Queue", "/SchedulingAttempt/SchedulingCycle",
		"/SchedulingAttempt/SchedulingCycle/PreFilter/NodeResourcesFit", "/SchedulingAttempt/SchedulingCycle/Filter/NodeResourcesFit",
		"/SchedulingAttempt/SchedulingCycle/Score/NodeResourcesFit",
		"/SchedulingAttempt/BindingCycle", "/SchedulingAttempt/BindingCycle/Bind",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no span %s among\n%s", want, strings.Join(got, "\n"))
		}
	}
	root := find(t, e.GetSpans(), "SchedulingAttempt")
	for key, want := range map[string]string{"k8s.pod.name": "p", "k8s.namespace.name": "default", "k8s.pod.uid": "p", "scheduler.attempt": "1",
		"scheduler.profile": v1.DefaultSchedulerName, "scheduler.result": "Scheduled", "k8s.node.name": "n1", "scheduler.nodes": "2", "scheduler.nodes.feasible": "2"} {
		if got := attributeOf(root, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	for _, s := range e.GetSpans() {
		if s.SpanContext.TraceID() != root.SpanContext.TraceID() || s.EndTime.Before(s.StartTime) {
			t.Errorf("span %s of trace %s, from %s to %s", s.Name, s.SpanContext.TraceID(), s.StartTime, s.EndTime)
		}
	}
	if queue := find(t, e.GetSpans(), "Queue"); queue.EndTime.Sub(queue.StartTime) != time.Millisecond {
		t.Errorf("%s in the queue", queue.EndTime.Sub(queue.StartTime))
	}
	if len(w.t.attempts) > 0 {
		t.Errorf("still followed: %v", w.t.attempts)
	}
}

// benchmarkProvider makes spans that are not sampled, or samples and drops them.
func benchmarkProvider(sampled bool) trace.TracerProvider {
	sampler := sdktrace.NeverSample()
	if sampled {
		sampler = sdktrace.AlwaysSample()
	}
	return sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler))
}

// An attempt and its binding, without tracing, and with it for none and for all.
func BenchmarkAttempt(b *testing.B) {
	for name, p := range map[string]trace.TracerProvider{"off": nil, "none sampled": benchmarkProvider(false), "all sampled": benchmarkProvider(true)} {
		b.Run(name, func(b *testing.B) {
			w := newWorldOf(b, p, false)
			var m loop.Machine = w.t
			if p == nil {
				m = w.t.Machine
			}
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "p"}, Spec: v1.PodSpec{SchedulerName: v1.DefaultSchedulerName}}
			waits := decode.Pod(pod)
			pod.Spec.NodeName = "n1"
			bound := decode.Pod(pod)
			b.ReportAllocs()
			for b.Loop() {
				m.Step(w.now, machine.PodSet{Pod: waits})
				m.Step(w.now, machine.ScheduleOne{})
				m.Step(w.now, machine.BindReply{UID: "p"})
				m.Step(w.now, machine.PodSet{Pod: bound})
				m.Step(w.now, machine.PodGone{UID: "p"})
			}
		})
	}
}

// The watch may show the pod bound before the reply comes, or gone.
func TestAttemptsThatTheWatchEnds(t *testing.T) {
	for name, event := range map[string]machine.Event{
		"bound": machine.PodSet{Pod: decode.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "p"}, Spec: v1.PodSpec{NodeName: "n1"}})},
		"gone":  machine.PodGone{UID: "p"},
	} {
		t.Run(name, func(t *testing.T) {
			p, e := recorded()
			w := newWorld(t, p)
			w.attempt("p", "1")
			w.step(event)
			w.step(machine.BindReply{UID: "p"})
			if got := tree(e.GetSpans()); !slices.Contains(got, "/SchedulingAttempt/BindingCycle/Bind") || !slices.Contains(got, "/SchedulingAttempt") || len(w.t.attempts) > 0 {
				t.Errorf("%q, still followed: %d", got, len(w.t.attempts))
			}
		})
	}
}

// The trace of a pod that fits no node has the result, who rejected it and PostFilter,
// and no binding cycle.
func TestPodThatFitsNoNode(t *testing.T) {
	p, e := recorded()
	w := newWorld(t, p)
	w.attempt("p", "8")
	root := find(t, e.GetSpans(), "SchedulingAttempt")
	if got := attributeOf(root, "scheduler.result") + " " + attributeOf(root, "scheduler.rejected_by"); got != `Unschedulable ["NodeResourcesFit"]` {
		t.Errorf("result %s", got)
	}
	if got := tree(e.GetSpans()); slices.Contains(got, "/SchedulingAttempt/BindingCycle") || !slices.Contains(got, "/SchedulingAttempt/SchedulingCycle/PostFilter/DefaultPreemption") {
		t.Errorf("%q", got)
	}
	if len(w.t.attempts) > 0 {
		t.Errorf("still followed: %v", w.t.attempts)
	}
}

// A refused binding marks its span and the attempt's as failed, with the reason.
func TestRefusedBinding(t *testing.T) {
	p, e := recorded()
	w := newWorld(t, p)
	w.attempt("p", "1")
	w.step(machine.BindReply{UID: "p", Result: machine.BindRefused, Err: errors.New("no such node")})
	for _, name := range []string{"Bind", "SchedulingAttempt"} {
		if s := find(t, e.GetSpans(), name); s.Status.Code != codes.Error {
			t.Errorf("%s: %v", name, s.Status)
		}
	}
	if got := find(t, e.GetSpans(), "Bind").Status.Description; got != "no such node" {
		t.Errorf("the binding failed because of %q", got)
	}
}

// What is not sampled is not timed, not followed, and sent to nobody.
func TestAttemptThatIsNotSampled(t *testing.T) {
	e := tracetest.NewInMemoryExporter()
	w := newWorld(t, sdktrace.NewTracerProvider(sdktrace.WithSyncer(e), sdktrace.WithSampler(sdktrace.NeverSample())))
	w.attempt("p", "1")
	w.step(machine.BindReply{UID: "p"})
	if n := len(e.GetSpans()); n+w.timed+len(w.t.attempts) > 0 {
		t.Errorf("%d spans, %d steps timed, %d followed", n, w.timed, len(w.t.attempts))
	}
}

// receiver takes spans in as an OpenTelemetry collector does.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	mu    sync.Mutex
	names map[string]string // of spans, by name, the service's
}

func (r *receiver) Export(_ context.Context, in *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rs := range in.ResourceSpans {
		service := ""
		for _, a := range rs.Resource.Attributes {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				r.names[s.Name] = service
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func configFile(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tracing.yaml")
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const header = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"

// A file's endpoint gets the spans of a daemon that ends.
func TestSpansReachTheEndpoint(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r, server := &receiver{names: map[string]string{}}, grpc.NewServer()
	collector.RegisterTraceServiceServer(server, r)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	p, err := Load(configFile(t, header+fmt.Sprintf("endpoint: %s\nsamplingRatePerMillion: 1000000\n", listener.Addr())), "me", features.New(), klog.Background())
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, p)
	w.attempt("p", "1")
	w.step(machine.BindReply{UID: "p"})
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range []string{"SchedulingAttempt", "Filter", "NodeResourcesFit", "Bind"} {
		if r.names[name] != "berth-scheduler" {
			t.Errorf("no span %s of berth-scheduler among %v", name, r.names)
		}
	}
}

// A tracing configuration that is wrong is refused, and the error names the file and
// the fault.
func TestBadConfigurations(t *testing.T) {
	for _, test := range []struct{ name, body, want string }{
		{"a rate beyond all", header + "samplingRatePerMillion: 1000001\n", "samplingRatePerMillion: Invalid value: 1000001"},
		{"a negative rate", header + "samplingRatePerMillion: -1\n", "samplingRatePerMillion: Invalid value: -1"},
		{"a scheme that gRPC lacks", header + "endpoint: https://collector:4317\n", "endpoint: Invalid value"},
		{"an unknown field", header + "colour: red\n", `unknown field "colour"`},
		{"a field of another type", header + "samplingRatePerMillion: often\n", "samplingRatePerMillion"},
		{"another kind", "apiVersion: apiserver.config.k8s.io/v1\nkind: EgressSelectorConfiguration\n", "EgressSelectorConfiguration"},
		{"no YAML", "{", "tracing.yaml"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Load(configFile(t, test.body), "me", features.New(), klog.Background())
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "tracing.yaml") {
				t.Errorf("%v, want %q and the file", err, test.want)
			}
		})
	}
	if _, err := Load("nowhere.yaml", "me", features.New(), klog.Background()); err == nil || !strings.Contains(err.Error(), "nowhere.yaml") {
		t.Error(err)
	}
}

package shadow

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	basemetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/decode"
)

// world is a shadow, the time, and what it has logged.
type world struct {
	testing.TB
	s    *Shadow
	m    *machine.Machine
	now  time.Time
	log  bytes.Buffer
	pods map[string]*v1.Pod

	registry basemetrics.KubeRegistry
}

func newWorld(t testing.TB, change func(*machine.Options, *Options)) *world {
	t.Helper()
	w := &world{TB: t, now: time.Unix(1e9, 0), pods: map[string]*v1.Pod{}, registry: basemetrics.NewKubeRegistry()}
	c := config.Default()
	profiles, err := profile.BuildAll(config.Profiles(c), plugins.Registry(features.Plugins(features.New())))
	if err != nil {
		t.Fatal(err)
	}
	mo := machine.Options{Profiles: profiles, Seed: 1, Workers: 1, Check: true, InitialBackoff: time.Second, MaxBackoff: time.Second, MaxUnschedulable: time.Minute}
	so := Options{
		Logger: funcr.New(func(_, args string) { fmt.Fprintln(&w.log, args) }, funcr.Options{}),
		Config: c, Register: w.registry.MustRegister, Synced: func() bool { return true },
	}
	if change != nil {
		change(&mo, &so)
	}
	w.m = machine.New(mo)
	w.s = New(w.m, so)
	return w
}

func (w *world) step(e machine.Event) {
	w.Helper()
	if effects := w.s.Step(w.now, e); len(effects) > 0 {
		w.Fatalf("%T had effects: %v", e, effects)
	}
	if p := w.s.First(); p != nil {
		w.Fatalf("would schedule %s", p.Key())
	}
}

// after lets time pass, and the timers fire.
func (w *world) after(d time.Duration) {
	w.Helper()
	w.now = w.now.Add(d)
	w.step(machine.Tick{})
}

func (w *world) node(name string, cpu int64, change ...func(*v1.Node)) {
	w.Helper()
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node " + name)}}
	n.Status.Allocatable = v1.ResourceList{
		v1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI), v1.ResourceMemory: resource.MustParse("64Gi"), v1.ResourcePods: resource.MustParse("110"),
	}
	for _, f := range change {
		f(n)
	}
	w.step(machine.NodeSet{Node: decode.Node(n)})
}

// pod creates a pod that waits, and asks for that many CPUs.
func (w *world) pod(name string, cpu int64, change ...func(*v1.Pod)) {
	w.Helper()
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	p.Spec.SchedulerName = v1.DefaultSchedulerName
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI)}}}}
	for _, f := range change {
		f(p)
	}
	w.pods[name] = p
	w.step(machine.PodSet{Pod: decode.Pod(p)})
}

// bound has the live scheduler bind the pod.
func (w *world) bound(name, node string) {
	w.Helper()
	w.pods[name].Spec.NodeName = node
	w.step(machine.PodSet{Pod: decode.Pod(w.pods[name])})
}

// twoNodes are one of which the best choice is always the other.
func (w *world) twoNodes() {
	w.Helper()
	many := func(n *v1.Node) { n.Status.Allocatable[v1.ResourcePods] = resource.MustParse("9999") }
	w.node("large", 16000, many)
	w.node("small", 16000, many, func(n *v1.Node) {
		n.Spec.Taints = []v1.Taint{{Key: "avoid", Effect: v1.TaintEffectPreferNoSchedule}}
	})
}

func (w *world) gone(name string) {
	w.Helper()
	w.step(machine.PodGone{UID: types.UID(name), Namespace: "default", Name: name})
}

// counted wants that many choices of the result, by the plugin.
func (w *world) counted(r Result, plugin string, want float64) {
	w.Helper()
	got, err := testutil.GetCounterMetricValue(w.s.metrics.choices.WithLabelValues(string(r), plugin, v1.DefaultSchedulerName))
	if err != nil || got != want {
		w.Errorf("%s by %q: %v (%v), want %v\n%s", r, plugin, got, err, want, w.log.String())
	}
	if choices, _ := w.s.Found(); choices[Choices{r, plugin, v1.DefaultSchedulerName}] != int(want) {
		w.Errorf("%s by %q: found %v, want %v", r, plugin, choices, want)
	}
}

// logged wants a log line with all the parts.
func (w *world) logged(parts ...string) {
	w.Helper()
	for line := range strings.Lines(w.log.String()) {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(line, p)
		}
		if all {
			return
		}
	}
	w.Errorf("no line with %q in:\n%s", parts, w.log.String())
}

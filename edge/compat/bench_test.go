package compat_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/compat"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/decode"
	. "github.com/berth-scheduler/berth/scheduler/schedulertest"
)

// noLoop stands in for the loop: no plugin here asks or tells anything.
type noLoop struct{}

func (noLoop) Inspect(context.Context, func()) error { return errors.New("there is no loop") }
func (noLoop) Report(machine.Event)                  {}
func (noLoop) Post(machine.Event)                    {}

// even rejects every other node.
var even = &filter{"Hosted", func(_ fwk.CycleState, _ *v1.Pod, n fwk.NodeInfo) *fwk.Status {
	if name := n.Node().Name; name[len(name)-1]%2 == 1 {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the node is odd")
	}
	return nil
}}

// bareNode is a NodeInfo that only has the node.
type bareNode struct {
	fwk.NodeInfo
	node *v1.Node
}

func (n *bareNode) Node() *v1.Node { return n.node }

// What the plugin's own code takes to reject 2,500 nodes, on one goroutine. A decision for
// which it has to be asked so often takes no less CPU time.
func BenchmarkPluginAlone(b *testing.B) {
	var nodes []fwk.NodeInfo
	for i := range 2500 {
		nodes = append(nodes, &bareNode{node: Node(fmt.Sprintf("node-%05d", 2*i+1))})
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, n := range nodes {
			if even.Filter(b.Context(), nil, nil, n).IsSuccess() {
				b.Fatal("an odd node passes")
			}
		}
	}
}

// signed is a plugin whose answers do not depend on the pod.
type (
	signing      struct{}
	signedFilter struct {
		*filter
		signing
	}
	signedScorer struct {
		*scorer
		signing
	}
)

func (signing) SignPod(context.Context, *v1.Pod) ([]fwk.SignFragment, *fwk.Status) { return nil, nil }

// The cost of a decision with one hosted plugin, at 5,000 equal nodes and 150 classes of
// pods in turn, or one class where it signs pods: as `berth-lab bench hosted` has it.
func BenchmarkDecide(b *testing.B) {
	byName := func(n fwk.NodeInfo) int64 {
		h := fnv.New32a()
		_, _ = h.Write([]byte(n.Node().Name)) // it never fails
		return int64(h.Sum32())
	}
	score := &scorer{named: "Hosted", score: func(n fwk.NodeInfo) int64 { return max(0, 100-5*int64(len(n.GetPods()))) }}
	below := func(n fwk.NodeInfo) int64 { return max(0, 80-5*int64(len(n.GetPods()))) + byName(n)%20 }
	normalised := &scorer{named: "Hosted", score: below, normalize: func(fwk.NodeScoreList) {}}
	for _, bc := range []struct {
		name    string
		plugin  fwk.Plugin
		classes int
	}{
		{"none", named("Hosted"), 150},
		{"filter", even, 150},
		{"score", score, 150},
		{"score-below", &scorer{named: "Hosted", score: below}, 150},
		{"normalised", normalised, 150},
		{"signed-none", named("Hosted"), 1},
		{"signed-filter", signedFilter{filter: even}, 1},
		{"signed-score", signedScorer{scorer: score}, 1},
		{"signed-normalised", signedScorer{scorer: normalised}, 1},
	} {
		b.Run(bc.name, func(b *testing.B) { benchmarkDecide(b, bc.plugin, bc.classes) })
	}
}

func benchmarkDecide(b *testing.B, pl fwk.Plugin, classes int) {
	c, err := config.Decode([]byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler, plugins: {multiPoint: {enabled: [{name: Hosted, weight: 2}]}}}]`), "the configuration")
	if err != nil {
		b.Fatal(err)
	}
	hosts, configs := compat.New(compat.Options{Logger: klog.Background(), Parallelism: 16}), config.Profiles(c)
	args, err := compat.NewArgs(nil)
	if err != nil {
		b.Fatal(err)
	}
	configs[0].Own = hosts.Registry(configs[0].Name, map[string]compat.PluginFactory{"Hosted": with(func(fwk.Handle) fwk.Plugin { return pl })}, args)
	profiles, err := profile.BuildAll(configs, plugins.Registry(features.Plugins(features.New())))
	if err != nil {
		b.Fatal(err)
	}
	m := machine.New(machine.Options{Profiles: profiles, Seed: 1, Workers: 2, InitialBackoff: time.Second, MaxBackoff: time.Minute, MaxUnschedulable: time.Hour})
	hosts.Built(profiles)
	hosts.Connect(m, noLoop{})
	now := time.Now()
	for i := range 5000 {
		n := Node(fmt.Sprintf("node-%05d", i))
		n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("32Gi"), v1.ResourcePods: resource.MustParse("110")}
		node := decode.Node(n)
		node.API = n
		m.Step(now, machine.NodeSet{Node: node})
	}
	add := func(i int) {
		p := Pod(fmt.Sprintf("pod-%07d", i))
		p.UID = types.UID(p.Name)
		k := int64(i % classes)
		p.Spec.Containers = []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
			v1.ResourceCPU: *resource.NewMilliQuantity(10+k, resource.DecimalSI), v1.ResourceMemory: *resource.NewQuantity((64+k)<<20, resource.BinarySI)}}}}
		decode.DefaultPod(p)
		pod := decode.Pod(p)
		pod.API = p
		m.Step(now, machine.PodSet{Pod: pod})
	}
	decide := func() {
		for _, e := range m.Step(now, machine.ScheduleOne{}) {
			if done, ok := e.(machine.AttemptDone); ok && done.Decision.Result != decision.ResultScheduled {
				b.Fatalf("%+v", done.Decision)
			}
		}
	}
	for i := range 3*classes + b.N {
		add(i)
	}
	for range 3 * classes {
		decide()
	}
	cpu := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it never fails
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	b.ReportAllocs()
	b.ResetTimer()
	before := cpu()
	defer func() { b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op") }()
	for range b.N {
		decide()
	}
}

package engine_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim"
)

// BenchmarkDefaultPlugins decides as `berth-lab bench scale` does: on 5,000 equal
// nodes, under the default configuration. Each pod stays where it is placed, until
// there are 20,000.
func BenchmarkDefaultPlugins(b *testing.B) {
	options, err := sim.Options(config.Default())
	if err != nil {
		b.Fatal(err)
	}
	requests := func(milliCPU, bytes int) resource.Vector {
		return resource.Vector{MilliCPU: int64(milliCPU), Memory: int64(bytes)}
	}
	for name, pattern := range map[string]func(i int) resource.Vector{
		"one class":     func(int) resource.Vector { return requests(100, 500<<20) },
		"150 classes":   func(i int) resource.Vector { return requests(10+i%150, (64+i%150)<<20) },
		"never repeats": func(i int) resource.Vector { return requests(1+i%100, 1<<20+i<<10) },
	} {
		b.Run(name, func(b *testing.B) {
			t := table.New()
			for i := range 5000 {
				n := &object.Node{Name: fmt.Sprint("node-", i), Allocatable: requests(4000, 32<<30), AllowedPods: 110}
				n.Labels = map[string]string{"kubernetes.io/hostname": n.Name}
				t.SetNode(n)
			}
			e := engine.New(t, 1, 1)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				v := pattern(i)
				pod := &object.Pod{UID: types.UID(fmt.Sprint(i % 20000)), Namespace: "default", Name: "pod"}
				pod.Demand = resource.Demand{Requests: v, Usage: v, NonZero: v, Scoring: v}
				t.AddPod(pod, t.Name(e.Decide(engine.For(options.Profiles[0], pod), nil).Row))
			}
		})
	}
}

// BenchmarkMixedClasses decides on pods that hardly ever come twice, on nodes that a
// selector, a taint, a soft taint and preferred affinity tell apart: requests of their own,
// and now and then the selector, too.
func BenchmarkMixedClasses(b *testing.B) {
	options, err := sim.Options(config.Default())
	if err != nil {
		b.Fatal(err)
	}
	for name, selectors := range map[string]int{"known selectors": 8, "new selectors": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			t := table.New()
			for i := range 5000 {
				n := &object.Node{Name: fmt.Sprint("node-", i), AllowedPods: 110}
				n.Allocatable = resource.Vector{MilliCPU: 4000, Memory: 32 << 30}
				n.Labels = map[string]string{"kubernetes.io/hostname": n.Name, "pool": fmt.Sprint(i * 7919 % 10), "disk": fmt.Sprint(i * 104729 % 3)}
				if i%7 == 0 {
					n.Taints = append(n.Taints, v1.Taint{Key: "dedicated", Effect: v1.TaintEffectNoSchedule})
				}
				if i%5 == 0 {
					n.Taints = append(n.Taints, v1.Taint{Key: "busy", Effect: v1.TaintEffectPreferNoSchedule})
				}
				t.SetNode(n)
			}
			e := engine.New(t, 1, 1)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i % 20000)), Namespace: "default", Name: "pod"}}
				not := v1.NodeSelectorRequirement{Key: "pool", Operator: v1.NodeSelectorOpNotIn, Values: []string{fmt.Sprint(i % selectors)}}
				disk := v1.NodeSelectorRequirement{Key: "disk", Operator: v1.NodeSelectorOpIn, Values: []string{fmt.Sprint(i % 3)}}
				pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution:  &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{not}}}},
					PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{Weight: 5, Preference: v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{disk}}}},
				}}
				p := decode.Pod(pod)
				v := resource.Vector{MilliCPU: int64(1 + i%100), Memory: int64(1<<20 + i<<10)}
				p.Demand = resource.Demand{Requests: v, Usage: v, NonZero: v, Scoring: v}
				t.AddPod(p, t.Name(e.Decide(engine.For(options.Profiles[0], p), nil).Row))
			}
		})
	}
}

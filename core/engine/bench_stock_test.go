package engine_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/config"
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

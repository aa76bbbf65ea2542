package headroom

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// BenchmarkPass5000 measures a pass over 5000 nodes, all of which have room.
func BenchmarkPass5000(b *testing.B) {
	t := table.New()
	for i := range 5000 {
		name, n := fmt.Sprint("node", i), int64(i)
		t.SetNode(&object.Node{Name: name, Allocatable: resource.Vector{MilliCPU: 4000, Memory: 32 << 30}, AllowedPods: 110})
		v := resource.Vector{MilliCPU: n * 7919 % 2000, Memory: n * 104729 % (16 << 10) << 20}
		t.AddPod(&object.Pod{UID: types.UID(name), Demand: resource.Demand{Usage: v, NonZero: v}}, name)
	}
	a := Of(100, 300<<20)
	p := passOf(a, a, a, 1, 1)
	sums, left := make([]int64, 500), make([]int32, 500)
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			for from := 0; from < 5000; from += 500 {
				p.Add(t, t.All()[from:from+500], sums, left)
			}
		}
	})
	b.Run("range", func(b *testing.B) {
		states, left := make([]int32, 5000), make([]int32, 5000)
		for b.Loop() {
			AddRange(p, t, 0, states, left)
		}
	})
}

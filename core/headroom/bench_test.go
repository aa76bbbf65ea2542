package headroom

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// BenchmarkAddMask5000 measures a pass over 5000 nodes, all of which have room, and over
// half of them.
func BenchmarkAddMask5000(b *testing.B) {
	t := table.New()
	full, half := make(table.RowSet, 79), make(table.RowSet, 79)
	for i := range 5000 {
		name, n := fmt.Sprint("node", i), int64(i)
		r := t.SetNode(&object.Node{Name: name, Allocatable: resource.Vector{MilliCPU: 4000, Memory: 32 << 30}, AllowedPods: 110})
		v := resource.Vector{MilliCPU: n * 7919 % 2000, Memory: n * 104729 % (16 << 10) << 20}
		t.AddPod(&object.Pod{UID: types.UID(name), Demand: resource.Demand{Usage: v, NonZero: v}}, name)
		full.Set(r, true)
		half.Set(r, n*7919%97 < 48)
	}
	p := passOf(Of(100, 300<<20), 1, 1)
	states := make([]int32, 5000)
	for name, mask := range map[string]table.RowSet{"full": full, "half": half} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				AddMask(p, t, 0, mask, 4096, states, nil)
			}
		})
	}
}

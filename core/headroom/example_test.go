package headroom_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/headroom"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// What a pass gives nodes of 4 CPUs and 8 GiB for a pod of 1 CPU and 1 GiB: the sum of both scores.
// It leaves out a node on which the pod does not fit.
func Example() {
	const GiB = 1 << 30
	t := table.New()
	for i, used := range []resource.Vector{{}, {MilliCPU: 1000, Memory: GiB}, {MilliCPU: 1000, Memory: 6 * GiB}, {MilliCPU: 3500, Memory: GiB}} {
		name := fmt.Sprint("n", i+1)
		t.SetNode(&object.Node{Name: name, Allocatable: resource.Vector{MilliCPU: 4000, Memory: 8 * GiB}, AllowedPods: 110})
		t.AddPod(&object.Pod{UID: types.UID(name), Demand: resource.Demand{Usage: used, NonZero: used}}, name)
	}
	pod := headroom.Of(1000, GiB)
	var pass headroom.Pass
	pass.JoinFilter([]sums.Sum{
		sums.New(t, v1.ResourcePods, 1, false), sums.New(t, v1.ResourceCPU, 1000, false), sums.New(t, v1.ResourceMemory, GiB, false),
	})
	pass.JoinScore(headroom.Score{Form: headroom.LeastAllocated, Amounts: pod}, 1)
	fmt.Println("complete without Balanced:", pass.Complete())
	pass.JoinScore(headroom.Score{Form: headroom.Balanced, Amounts: pod}, 1)
	fmt.Println("complete:", pass.Complete())

	scores := make([]int32, t.Rows())
	left := headroom.AddMask(&pass, t, 0, table.RowSet{0b1111}, 0, scores, nil)
	for _, row := range t.All() {
		cpu, memory := pod.LeastAllocated(&t.Headroom()[row])
		fmt.Printf("%s: (%d + %d) / 2 + %d, the pass gives %d\n", t.Name(row), cpu, memory, pod.Balanced(t, row), scores[row])
	}
	for _, row := range left {
		fmt.Println("the plugins are asked about", t.Name(row))
	}

	// Output:
	// complete without Balanced: false
	// complete: true
	// n1: (75 + 87) / 2 + 71, the pass gives 152
	// n2: (50 + 75) / 2 + 72, the pass gives 134
	// n3: (50 + 12) / 2 + 78, the pass gives 109
	// n4: (0 + 75) / 2 + 75, the pass gives 0
	// the plugins are asked about n4
}

package noderesources

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// fleet is a table of nodes in three sizes, half full.
func fleet(nodes int) (*table.Table, *object.Pod) {
	tb := table.New()
	size := func(cpu, gib int64) resource.Vector { return resource.Vector{MilliCPU: cpu, Memory: gib << 30} }
	for i := range nodes {
		name, k := fmt.Sprint("node", i), int64(1<<(i%3))
		n := &object.Node{Name: name, Allocatable: size(16000*k, 64*k), AllowedPods: 110}
		n.Allocatable.Scalars = []resource.Scalar{{Name: gpu, Value: k}}
		tb.SetNode(n)
		v := size(8000*k+int64(i%1000), 24*k)
		tb.AddPod(&object.Pod{UID: types.UID(name), Demand: resource.Demand{Usage: v, NonZero: v}}, name)
	}
	v := size(250, 1)
	return tb, &object.Pod{UID: "pod", Demand: resource.Demand{Requests: v, Usage: v, NonZero: v, Scoring: v}}
}

// Filter and Score allocate nothing.
func TestKernelsAllocateNothing(t *testing.T) {
	tb, pod := fleet(100)
	pl := plugin(t, nil)
	in, rows := &framework.Input{Table: tb, Pod: pod, Rules: pl.PreFilter(tb, pod).Rules}, tb.All()
	verdicts, scores := make([]framework.Verdict, 100), make([]int64, 100)
	if n := testing.AllocsPerRun(10, func() { pl.Filter(in, rows, verdicts) }); n != 0 {
		t.Errorf("Filter: %v allocations", n)
	}
	in.State = pl.PreScore(tb, pod).State
	if n := testing.AllocsPerRun(10, func() { pl.Score(in, rows, scores) }); n != 0 {
		t.Errorf("Score: %v allocations", n)
	}
}

// BenchmarkFilter5000 measures Filter on 5000 nodes.
func BenchmarkFilter5000(b *testing.B) {
	tb, pod := fleet(5000)
	pl := plugin(b, nil)
	in, out := &framework.Input{Table: tb, Pod: pod, Rules: pl.PreFilter(tb, pod).Rules}, make([]framework.Verdict, 5000)
	for b.Loop() {
		pl.Filter(in, tb.All(), out)
	}
}

// BenchmarkScore5000 measures Score on 5000 nodes, for each strategy.
func BenchmarkScore5000(b *testing.B) {
	tb, pod := fleet(5000)
	for _, s := range []*configv1.ScoringStrategy{
		{Type: configv1.LeastAllocated},
		{Type: configv1.MostAllocated},
		{Type: configv1.RequestedToCapacityRatio, RequestedToCapacityRatio: &configv1.RequestedToCapacityRatioParam{
			Shape: []configv1.UtilizationShapePoint{{Utilization: 0, Score: 0}, {Utilization: 100, Score: 10}},
		}},
	} {
		b.Run(string(s.Type), func(b *testing.B) {
			pl := plugin(b, &configv1.NodeResourcesFitArgs{ScoringStrategy: s})
			in, out := &framework.Input{Table: tb, Pod: pod, State: pl.PreScore(tb, pod).State}, make([]int64, 5000)
			for b.Loop() {
				pl.Score(in, tb.All(), out)
			}
		})
	}
}

// BenchmarkOneRow measures Filter and Score on one node.
func BenchmarkOneRow(b *testing.B) {
	tb, pod := fleet(5000)
	pl := plugin(b, nil)
	filter := &framework.Input{Table: tb, Pod: pod, Rules: pl.PreFilter(tb, pod).Rules}
	score := &framework.Input{Table: tb, Pod: pod, State: pl.PreScore(tb, pod).State}
	verdicts, scores := make([]framework.Verdict, 1), make([]int64, 1)
	for b.Loop() {
		pl.Filter(filter, tb.All()[7:8], verdicts)
		pl.Score(score, tb.All()[7:8], scores)
	}
}

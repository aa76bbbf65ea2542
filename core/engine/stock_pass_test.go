package engine_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/sim"
)

// Pods that ask for CPU and memory alone, and hardly ever come twice, are decided on as
// without views, under the default configuration: on nodes that a part of the pods is kept
// off, on full ones, on those that are taken in or leave, where pods without requests
// are.
func TestPassesAreNaive(t *testing.T) {
	options, err := sim.Options(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		tb := table.New()
		node := func(i int) {
			n := &object.Node{Name: fmt.Sprint("node-", i), AllowedPods: rapid.SampledFrom([]int64{110, 110, 2}).Draw(t, "pods")}
			n.Allocatable = resource.Vector{
				MilliCPU: rapid.SampledFrom([]int64{4000, 4000, 8000, 3920, 0}).Draw(t, "CPU"),
				Memory:   rapid.SampledFrom([]int64{32 << 30, 32 << 30, 16<<30 - 4096, table.MostInverted + 1}).Draw(t, "memory"),
			}
			switch rapid.IntRange(0, 30).Draw(t, "kind") {
			case 0:
				n.Unschedulable = true
			case 1:
				n.Taints = []v1.Taint{{Key: "a", Value: "b", Effect: v1.TaintEffectNoSchedule}}
			case 2, 3:
				n.Taints = []v1.Taint{{Key: "a", Value: "b", Effect: v1.TaintEffectPreferNoSchedule}}
			case 4:
				n.Images = []object.Image{{Names: []string{"registry.example/app:1"}, Bytes: 800 << 20}}
			}
			tb.SetNode(n)
		}
		nodes := rapid.IntRange(1, 90).Draw(t, "nodes")
		for i := range nodes {
			node(i)
		}
		pod := func(i int) *object.Pod {
			p := &object.Pod{UID: types.UID(fmt.Sprint("pod-", i)), Namespace: "default", Name: fmt.Sprint("pod-", i)}
			v := resource.Vector{
				MilliCPU: rapid.SampledFrom([]int64{100, 400, 1, 1900}).Draw(t, "CPU") + rapid.Int64Range(0, 3).Draw(t, "more CPU"),
				Memory:   rapid.SampledFrom([]int64{1 << 30, 256 << 20, 3 << 30}).Draw(t, "memory") + rapid.Int64Range(0, 3).Draw(t, "more memory")<<10,
			}
			p.Demand = resource.Demand{Requests: v, Usage: v, NonZero: v, Scoring: v}
			if rapid.IntRange(0, 4).Draw(t, "sidecar") == 0 { // that requests nothing
				p.Demand.NonZero.MilliCPU += 100
				p.Demand.NonZero.Memory += 200 << 20
				p.Demand.Scoring = p.Demand.NonZero
			}
			p.Images = []string{"registry.example/app:1"}
			return p
		}
		kept, plain := engine.New(tb, 1, 2), engine.NewPlain(tb, 1)
		for i := 0; i < 60; {
			var requests []*engine.Request
			for range rapid.IntRange(1, 5).Draw(t, "ahead") {
				requests = append(requests, engine.For(options.Profiles[0], pod(i)))
				i++
			}
			for _, r := range requests {
				got, want := kept.Decide(r, nil), plain.Decide(engine.For(options.Profiles[0], r.Pod), nil)
				if got.Row != want.Row || got.Score != want.Score || got.Ties != want.Ties || got.Feasible != want.Feasible {
					t.Fatalf("row %d of %d, score %d, %d ties; want %d of %d, %d, %d", got.Row, got.Feasible, got.Score, got.Ties, want.Row, want.Feasible, want.Score, want.Ties)
				}
				if got, want := fmt.Sprint(got.Tallies()), fmt.Sprint(want.Tallies()); got != want {
					t.Fatalf("tallies %s, want %s", got, want)
				}
				if err := kept.Check(); err != nil {
					t.Fatal(err)
				}
				if got.Row >= 0 {
					tb.AddPod(r.Pod, tb.Name(got.Row))
				}
			}
			switch rapid.IntRange(0, 4).Draw(t, "then") {
			case 0:
				node(rapid.IntRange(0, nodes).Draw(t, "node"))
			case 1:
				tb.RemoveNode(fmt.Sprint("node-", rapid.IntRange(0, nodes).Draw(t, "node")))
			case 2:
				tb.RemovePod(types.UID(fmt.Sprint("pod-", rapid.IntRange(0, i).Draw(t, "pod"))))
			}
		}
		if err := tb.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

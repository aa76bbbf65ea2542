package table

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// Excess counts bound pods, of what the node states; of pods it counts how many.
func TestExcess(t *testing.T) {
	pod := func(name string, demand resource.Vector) *object.Pod {
		return &object.Pod{UID: types.UID(name), Name: name, NodeName: "n", Demand: resource.Demand{Usage: demand}}
	}
	card := func(n int64) []resource.Scalar { return []resource.Scalar{{Name: "example.com/card", Value: n}} }
	offer := resource.Vector{MilliCPU: 1000, Memory: 100, Scalars: card(2)}
	two := resource.Vector{MilliCPU: 400, Memory: 50, Scalars: card(1)}
	for name, test := range map[string]struct {
		allowed int64
		pods    []*object.Pod
		of      *object.Pod
		want    Excess
	}{
		"fits":                {10, []*object.Pod{pod("a", two), pod("b", two)}, nil, Excess{}},
		"too many pods":       {1, []*object.Pod{pod("a", two), pod("b", two)}, nil, Excess{v1.ResourcePods, 2, 1}},
		"cpu":                 {10, []*object.Pod{pod("a", two), pod("b", resource.Vector{MilliCPU: 601})}, nil, Excess{v1.ResourceCPU, 1001, 1000}},
		"memory":              {10, []*object.Pod{pod("a", resource.Vector{Memory: 101})}, nil, Excess{v1.ResourceMemory, 101, 100}},
		"a named resource":    {10, []*object.Pod{pod("a", resource.Vector{Scalars: card(3)})}, nil, Excess{"example.com/card", 3, 2}},
		"not stated":          {10, []*object.Pod{pod("a", resource.Vector{EphemeralStorage: 5})}, nil, Excess{}},
		"not what it asks":    {10, []*object.Pod{pod("a", resource.Vector{Memory: 101})}, pod("b", resource.Vector{MilliCPU: 5}), Excess{}},
		"assumed, not bound":  {10, []*object.Pod{pod("a", two), {UID: "b", Demand: resource.Demand{Usage: resource.Vector{MilliCPU: 900}}}}, nil, Excess{}},
		"no pods are allowed": {0, []*object.Pod{pod("a", two)}, nil, Excess{}},
	} {
		tb := New()
		r := tb.SetNode(&object.Node{Name: "n", Allocatable: offer, AllowedPods: test.allowed})
		for _, p := range test.pods {
			tb.AddPod(p, "n")
		}
		if got, over := tb.Excess(r, test.of); got != test.want && over || over != (test.want != Excess{}) {
			t.Errorf("%s: %+v %t, want %+v", name, got, over, test.want)
		}
		tb.RemoveNode("n")
		if _, over := tb.Excess(r, nil); over {
			t.Errorf("%s: over-committed without a node", name)
		}
	}
}

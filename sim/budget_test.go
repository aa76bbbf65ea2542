package sim

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/edge/config"
)

// TestBudgets: who is evicted depends on the budget, though the pod that it
// protects has the lower priority.
func TestBudgets(t *testing.T) {
	o, err := Options(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	o.Seed, o.Check = 1, true
	full := func(name, node string, priority int32) *object.Pod {
		p := &object.Pod{UID: types.UID(name), Namespace: "d", Name: name, NodeName: node, Priority: priority,
			SchedulerName: "default-scheduler", Labels: map[string]string{"app": name}}
		p.Demand.Requests.MilliCPU, p.Demand.Usage.MilliCPU = 1000, 1000
		return p
	}
	in := Input{Machine: o, Pods: []*object.Pod{full("less", "a", 1), full("more", "b", 2), full("new", "", 3)}}
	for _, name := range []string{"a", "b"} {
		in.Nodes = append(in.Nodes, &object.Node{UID: types.UID(name), Name: name, AllowedPods: 9, Allocatable: resource.Vector{MilliCPU: 1000}})
	}
	budget := &object.Budget{Namespace: "d", Name: "keep", Selector: labels.SelectorFromSet(labels.Set{"app": "less"})}
	for _, c := range []struct {
		budgets []*object.Budget
		want    string
	}{{nil, "a"}, {[]*object.Budget{budget}, "b"}} {
		in.Budgets = c.budgets
		r, err := Run(in)
		if err != nil || r.Placed["d/new"] != c.want {
			t.Errorf("%d budgets: placed %v, unplaced %v, %v; want node %s", len(c.budgets), r.Placed, r.Unplaced, err, c.want)
		}
	}
}

package preempt_test

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/preempt"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// A pod of priority 10 needs 2 of the 4 CPUs of a node. On each node as many pods as possible stay,
// the most important first. Nodes are compared by violations of budgets, then by the highest
// priority among the victims, then by the sum of the priorities, which grows with each victim.
func Example() {
	t := table.New()
	for node, pods := range [][]*object.Pod{
		{podOf("guarded", 2, 1), podOf("vip-1", 2, 50)},
		{podOf("high", 2, 8), podOf("vip-2", 2, 50)},
		{podOf("stays-3", 2, 4), podOf("low-a", 1, 3), podOf("low-b", 1, 3)},
		{podOf("stays-4", 2, 4), podOf("low", 2, 3)},
		{podOf("vip-5", 4, 50)}, // nobody there may be preempted
	} {
		n := &object.Node{Name: fmt.Sprint("n", node+1)}
		n.Allocatable.MilliCPU = 4000
		t.SetNode(n)
		for _, p := range pods {
			t.AddPod(p, n.Name)
		}
	}
	budget := &object.Budget{Namespace: "default", Allowed: 0, Selector: labels.SelectorFromSet(labels.Set{"name": "guarded"})}
	call := callFor(t, podOf("preemptor", 2, 10), budget)

	candidates, _, _ := preempt.Candidates(call, preempt.Limits{Percentage: 100})
	for len(candidates) > 0 {
		best := preempt.Best(call, candidates)
		fmt.Printf("%s: %d violations, victims", best.Node, best.NumPDBViolations)
		for _, v := range best.Victims {
			fmt.Printf(" %s (priority %d)", v.Name, v.Priority)
		}
		fmt.Println()
		candidates = slices.DeleteFunc(candidates, func(c framework.Candidate) bool { return c.Node == best.Node })
	}
	plan, _, _ := new(preempt.Finder).Find(call, preempt.Limits{Percentage: 100})
	fmt.Println("plan:", plan.Node)

	// Output:
	// n4: 0 violations, victims low (priority 3)
	// n3: 0 violations, victims low-a (priority 3) low-b (priority 3)
	// n2: 0 violations, victims high (priority 8)
	// n1: 1 violations, victims guarded (priority 1)
	// plan: n4
}

// callFor returns the input of a search for the pod, with a filter that compares CPU alone. No
// node has room for the pod.
func callFor(t *table.Table, pod *object.Pod, budgets ...*object.Budget) *framework.PostFilterCall {
	lacks := func(row table.Row) int64 {
		return pod.Demand.Requests.MilliCPU + t.Used(table.CPU)[row] - t.Allocatable(table.CPU)[row]
	}
	c := &framework.PostFilterCall{Table: t, Pod: pod, Draw: func(int) int { return 0 }}
	c.Filters.Code = func(table.Row) decision.Code { return decision.Unschedulable }
	c.Filters.Unschedulable = t.Live
	c.Filters.Run = func(row table.Row) *decision.Blocker {
		if lacks(row) <= 0 {
			return nil
		}
		return &decision.Blocker{Plugin: "Fit", Code: decision.Unschedulable, Reasons: []string{"Insufficient cpu"}}
	}
	c.Filters.Shortfall = func(row table.Row, shortfall []int64) []int64 { return append(shortfall, lacks(row)) }
	c.Filters.Frees = func(p *object.Pod, frees []int64) []int64 { return append(frees, p.Demand.Usage.MilliCPU) }
	c.Nominations.PodsForNode = func(string) []*object.Pod { return nil }
	c.Nominations.ChangedSince = func(uint64) (nodes []string, now uint64, known bool) { return nil, 0, true }
	c.Disruption = framework.Disruption{Budgets: budgets, Evicting: func(types.UID) bool { return false }}
	return c
}

func podOf(name string, cpus int64, priority int32) *object.Pod {
	u := resource.Vector{MilliCPU: cpus * 1000}
	return &object.Pod{UID: types.UID(name), Namespace: "default", Name: name, Labels: map[string]string{"name": name},
		Priority: priority, Demand: resource.Demand{Requests: u, Usage: u}}
}

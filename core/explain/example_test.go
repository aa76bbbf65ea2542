package explain_test

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
)

// Three plugins reject five nodes, one of them for two reasons, and preemption finds nobody to
// evict: what kubectl describe shows of the pod.
func Example() {
	rejects := func(nodes int, code decision.Code, plugin string, reasons ...string) decision.Tally {
		return decision.Tally{Nodes: nodes, Blocker: decision.Blocker{Plugin: plugin, Code: code, Reasons: reasons}}
	}
	d := &decision.Decision{
		Result: decision.ResultUnschedulable, NodesTotal: 5,
		Tallies: []decision.Tally{
			rejects(1, decision.UnschedulableAndUnresolvable, "NodeUnschedulable", "node(s) were unschedulable"),
			rejects(2, decision.UnschedulableAndUnresolvable, "TaintToleration", "node(s) had untolerated taint(s)"),
			rejects(1, decision.Unschedulable, "NodeResourcesFit", "Insufficient cpu"),
			rejects(1, decision.Unschedulable, "NodeResourcesFit", "Insufficient cpu", "Insufficient memory"),
		},
		PostFilter: []string{"preemption: 0/5 nodes are available: 2 No preemption victims found for incoming pod, 3 Preemption is not helpful for scheduling."},
	}
	c := explain.Condition(d)
	fmt.Printf("PodScheduled is %s, reason %s\n%s\n", c.Status, c.Reason, c.Message)

	fmt.Println("in a cluster without nodes:", explain.Message(&decision.Decision{Result: decision.ResultUnschedulable}))

	// Output:
	// PodScheduled is False, reason Unschedulable
	// 0/5 nodes are available: 1 Insufficient memory, 1 node(s) were unschedulable, 2 Insufficient cpu, 2 node(s) had untolerated taint(s). preemption: 0/5 nodes are available: 2 No preemption victims found for incoming pod, 3 Preemption is not helpful for scheduling.
	// in a cluster without nodes: no nodes available to schedule pods
}

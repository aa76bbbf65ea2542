package nodetaints_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/index/nodetaints"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// A pod tolerates the taint gpu. Its tolerations are compared with each taint once. Then one
// operation finds the taints of a node that it does not tolerate.
func Example() {
	t := table.New()
	gpu := v1.Taint{Key: "gpu", Effect: v1.TaintEffectNoSchedule}
	broken := v1.Taint{Key: "broken", Effect: v1.TaintEffectNoSchedule}
	t.SetNode(&object.Node{Name: "n1"})
	t.SetNode(&object.Node{Name: "n2", Taints: []v1.Taint{gpu}})
	t.SetNode(&object.Node{Name: "n3", Taints: []v1.Taint{gpu, broken}})

	x := nodetaints.Of(t)
	tolerations := match.NewTolerations([]v1.Toleration{{Key: "gpu", Operator: v1.TolerationOpExists}})
	var refused nodetaints.Set
	for i, taint := range x.Numbered() {
		if !tolerations.Tolerates(&taint, false) {
			refused |= 1 << i
		}
		fmt.Printf("taint %d is %s\n", i, taint.Key)
	}
	for row, taints := range x.Sets() {
		fmt.Printf("%s has %03b, not tolerated %03b\n", t.Name(table.Row(row)), taints, taints&refused)
	}

	// Output:
	// taint 0 is gpu
	// taint 1 is broken
	// n1 has 000, not tolerated 000
	// n2 has 001, not tolerated 000
	// n3 has 011, not tolerated 010
}

package nodelabels_test

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/index/nodelabels"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Nodes share zones and racks. Then two of four move to racks of their own, so that no node shares
// its rack any more.
func Example() {
	t := table.New()
	set := func(name, zone, rack string) {
		t.SetNode(&object.Node{Name: name, Labels: map[string]string{"zone": zone, "rack": rack}})
	}
	x := nodelabels.Of(t)
	show := func(what string) {
		fmt.Println(what)
		for _, key := range []string{"zone", "rack", "gpu"} {
			fmt.Printf("  %s: on some node %v, mostly unique %v\n", key, x.HasKey(key), x.UniquePerNode(key))
		}
	}
	set("n1", "a", "r1")
	set("n2", "a", "r1")
	set("n3", "b", "r2")
	set("n4", "b", "r2")
	show("two nodes a rack")
	set("n2", "a", "r3")
	set("n4", "b", "r4")
	show("one node a rack")
	fmt.Println("nodes of r1:", x.NodesWithUnique("rack", "r1"))

	// Output:
	// two nodes a rack
	//   zone: on some node true, mostly unique false
	//   rack: on some node true, mostly unique false
	//   gpu: on some node false, mostly unique false
	// one node a rack
	//   zone: on some node true, mostly unique false
	//   rack: on some node true, mostly unique true
	//   gpu: on some node false, mostly unique false
	// nodes of r1: 1
}

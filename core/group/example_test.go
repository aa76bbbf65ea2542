package group_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/group"
	"github.com/berth-scheduler/berth/core/object"
)

// A leader assumes the three pods of a gang, binds one and dies. The next leader finds the gang
// half bound, until it has assumed the others.
func Example() {
	gang := &object.PodGroup{Gang: true, MinCount: 3}
	groups := group.New()
	var pods []*object.Pod
	for _, name := range []string{"a", "b", "c"} {
		p := &object.Pod{UID: types.UID(name), Namespace: "ml", Name: name, SchedulingGroup: object.InPodGroup("train")}
		groups.Join(p)
		pods = append(pods, p)
	}
	g := groups.Of(pods[0])
	show := func(what string) {
		fmt.Printf("%s: %d bound, %d on a node, %d known; half bound %v\n", what, g.Bound(), g.Scheduled(), g.Len(), g.HalfBound(gang))
	}
	show("pending")
	for _, p := range pods {
		groups.Placed(p)
	}
	show("assumed")
	bound := *pods[0]
	bound.NodeName = "n1"
	groups.Placed(&bound)
	show("one is bound")
	groups.Taken(pods[1])
	groups.Taken(pods[2])
	show("the assumptions are lost")
	groups.Placed(pods[1])
	groups.Placed(pods[2])
	show("assumed again")

	// Output:
	// pending: 0 bound, 0 on a node, 3 known; half bound false
	// assumed: 0 bound, 3 on a node, 3 known; half bound false
	// one is bound: 1 bound, 3 on a node, 3 known; half bound false
	// the assumptions are lost: 1 bound, 1 on a node, 3 known; half bound true
	// assumed again: 1 bound, 3 on a node, 3 known; half bound false
}

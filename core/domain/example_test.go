package domain_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Pods are counted by zone as they come and go. When a node moves to another zone they are
// counted anew.
func Example() {
	t := table.New()
	set := func(node, zone string) { t.SetNode(&object.Node{Name: node, Labels: map[string]string{"zone": zone}}) }
	set("n1", "a")
	set("n2", "a")
	set("n3", "b")
	t.SetNode(&object.Node{Name: "n4"}) // in no zone
	for i, node := range []string{"n1", "n2", "n3", "n4"} {
		t.AddPod(&object.Pod{UID: types.UID(fmt.Sprint(i))}, node)
	}

	var layouts domain.Layouts
	layouts.Prepare(t)
	pods := domain.Column{Topology: layouts.Topology(domain.Key{Label: "zone"})}
	var follower domain.Follower
	show := func(what string) {
		how := "nothing to count"
		moved := pods.Follow(t, &domain.Rooms{})
		follower.Follow(t, moved, func(p table.PodChange, n int64) {
			how = "one pod counted"
			pods.Add(p.Row, n)
		}, func() (sets, rows int) {
			how = "all pods counted"
			pods.Clear()
			for _, row := range t.All() {
				pods.Add(row, int64(len(t.Pods(row))))
			}
			return 1, t.Rows()
		})
		byZone := map[string]int64{}
		for d := domain.Unnamed + 1; int(d) < pods.Len(); d++ {
			byZone[pods.Name(d)] = pods.Sums[d]
		}
		fmt.Printf("%s: %s, %v, %d in all zones\n", what, how, byZone, pods.Total())
	}
	show("at first")
	t.AddPod(&object.Pod{UID: "new"}, "n2")
	show("a pod came to n2")
	set("n2", "c")
	show("n2 moved to zone c")

	// Output:
	// at first: all pods counted, map[a:2 b:1], 3 in all zones
	// a pod came to n2: one pod counted, map[a:3 b:1], 4 in all zones
	// n2 moved to zone c: all pods counted, map[a:1 b:1 c:2], 4 in all zones
}

package table_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/decode"
)

// Two nodes and two pods: the columns show what is taken, a reader finds the
// rows that changed since its last look, and a try is undone.
func Example() {
	t := table.New()
	a := t.SetNode(node("a"))
	t.SetNode(node("b"))
	t.AddPod(pod("web"), "a")
	fmt.Println("CPU taken on a:", t.Used(table.CPU)[a], "of", t.Allocatable(table.CPU)[a])

	seen := t.Revision()
	t.AddPod(pod("db"), "b")
	for _, row := range t.AppendChanged(nil, seen, t.Rows()) {
		fmt.Println("changed since:", t.Name(row))
	}

	mark := t.Checkpoint()
	t.RemovePod("web")
	fmt.Println("without web:", t.Used(table.CPU)[a])
	t.Undo(mark)
	fmt.Println("undone:", t.Used(table.CPU)[a])
	// Output:
	// CPU taken on a: 1000 of 4000
	// changed since: b
	// without web: 0
	// undone: 1000
}

func node(name string) *object.Node {
	n := &v1.Node{}
	n.Name = name
	n.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("10")}
	return decode.Node(n)
}

// pod returns a pod that requests one CPU. Its UID is its name.
func pod(name string) *object.Pod {
	requests := v1.ResourceList{"cpu": resource.MustParse("1")}
	p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: requests}}}}}
	p.Name, p.UID = name, types.UID(name)
	return decode.Pod(p)
}

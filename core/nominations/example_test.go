package nominations_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/nominations"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// nominated lists pods by node, as they stand.
type nominated map[string][]*object.Pod

func (n nominated) NominatedTo(node string) []*object.Pod { return n[node] }

func (n nominated) NominatedNodes() (nodes []string) {
	for node := range n { // any order: a test with one
		nodes = append(nodes, node)
	}
	return nodes
}

func (n nominated) NominatedNode(types.UID) string { return "" }

func (n nominated) Renominated(uint64) ([]string, uint64, bool) { return nil, 0, false }

func podOf(name string, priority int32) *object.Pod {
	return &object.Pod{UID: types.UID(name), Name: name, Priority: priority}
}

// The pods of the package's comment.
func Example() {
	nodes := table.New()
	n1 := nodes.SetNode(&object.Node{Name: "n1"})
	a, b := podOf("a", 10), podOf("b", 5)

	var rows nominations.Rows
	rows.Follow(nodes, nominated{"n1": {a, b}})
	show := func(pod *object.Pod, own table.Row) {
		fmt.Printf("against %s of priority %d:", pod.Name, pod.Priority)
		for _, p := range rows.On(n1).Against(pod, own) {
			fmt.Print(" ", p.Name)
		}
		fmt.Println()
	}
	show(podOf("c", 7), -1)
	show(podOf("d", 1), -1)
	show(podOf("e", 20), -1)
	show(a, n1)

	// Output:
	// against c of priority 7: a
	// against d of priority 1: a b
	// against e of priority 20:
	// against a of priority 10:
}

package nodelabels

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Ten thousand nodes, one after the other, each with labels of its
// own, on no more than twenty rows.
func TestLabelSetsWithoutEnd(t *testing.T) {
	tab := table.New()
	for i := range 2 * keysCounted {
		Of(tab).UniquePerNode(fmt.Sprint("key-", i))
	}
	Of(tab).UniquePerNode(v1.LabelHostname)
	for i := range 10_000 {
		name := fmt.Sprint("node-", i)
		tab.SetNode(&object.Node{Name: name, Labels: map[string]string{v1.LabelHostname: name, "zone": name, name: "here"}})
		if i >= 20 {
			tab.RemoveNode(fmt.Sprint("node-", i-20))
		}
	}
	if err := tab.Check(); err != nil {
		t.Error(err)
	}
	if rows, names := tab.Rows(), len(Of(tab).values[v1.LabelHostname].nodes); rows > 21 || names > 20 {
		t.Errorf("%d rows, %d host names", rows, names)
	}
}

// The revision moves when nodes begin or cease to share a value of the label,
// and at no other change.
func TestUniqueRevisionCountsSharing(t *testing.T) {
	tb := table.New()
	Of(tb).UniquePerNode("kubernetes.io/hostname")
	node := func(name, host string) *object.Node {
		n := &object.Node{Name: name}
		if host != "" {
			n.Labels = map[string]string{"kubernetes.io/hostname": host}
		}
		return n
	}
	step := func(what string, moves bool, f func()) {
		t.Helper()
		before := Of(tb).UniqueRevision()
		f()
		if moved := Of(tb).UniqueRevision() != before; moved != moves {
			t.Errorf("%s: the revision moved: %v", what, moved)
		}
		if err := tb.Check(); err != nil {
			t.Error(err)
		}
	}
	step("first", false, func() { tb.SetNode(node("n1", "h1")) })
	step("other name", false, func() { tb.SetNode(node("n2", "h2")) })
	step("shared", true, func() { tb.SetNode(node("n3", "h1")) })
	step("shared by three", false, func() { tb.SetNode(node("n4", "h1")) })
	step("one of three goes", false, func() { tb.RemoveNode("n4") })
	step("same again", false, func() { tb.SetNode(node("n3", "h1")) })
	step("without", true, func() { tb.SetNode(node("n3", "")) })
	step("renamed", true, func() { tb.SetNode(node("n2", "h1")) })
	step("gone", true, func() { tb.RemoveNode("n1") })
	if Of(tb).NodesWithUnique("kubernetes.io/hostname", "h1") != 1 || Of(tb).NodesWithUnique("kubernetes.io/hostname", "h2") != 0 {
		t.Errorf("%d nodes on h1, %d on h2; want 1 and 0", Of(tb).NodesWithUnique("kubernetes.io/hostname", "h1"), Of(tb).NodesWithUnique("kubernetes.io/hostname", "h2"))
	}
}

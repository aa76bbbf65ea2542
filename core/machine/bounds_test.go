package machine

import (
	"fmt"
	"maps"
	"slices"
)

// leave takes away all pods and nodes and looks at what the machine still
// holds: whatever went wrong before, nothing is left behind.
func (c *chaos) leave() {
	c.Helper()
	for _, key := range slices.Sorted(maps.Keys(c.pods)) {
		c.deletePod(key)
	}
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		c.deleteNode(name)
	}
	c.settle()
	if left := c.m.leftovers(); left != "" {
		c.Fatalf("all pods and nodes are gone; left are %s\n%s", left, c.m.queue)
	}
}

func (m *Machine) leftovers() (left string) {
	for _, l := range []struct {
		what string
		n    int
	}{
		{"pods", len(m.pods.byUID)}, {"names", len(m.pods.byName)}, {"assumed pods", m.pods.assumedCount}, {"binding cycles that wait", len(m.bindings.waiting)},
		{"extender cycles", len(m.extenders.cycles)}, {"queued pods", len(m.queue.Dump())}, {"nodes with nominations", len(m.queue.NominatedNodes())},
		{"placed pods", m.table.PlacedPods()}, {"nodes", m.table.Live()},
	} {
		if l.n > 0 {
			left += fmt.Sprintf("%d %s; ", l.n, l.what)
		}
	}
	return left
}

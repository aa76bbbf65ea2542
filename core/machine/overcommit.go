package machine

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// overcommits notes where pods that the API shows bound request more than their node
// offers. Two schedulers that decide at the same moment may do that. No filter lets a
// further pod onto such a node.
type overcommits struct {
	nodes   map[string]bool
	pods    int
	counted bool // from the first decision on: what was there before is history
}

// OvercommittedNodes is the number of nodes whose bound pods request more than they offer.
func (m *Machine) OvercommittedNodes() int { return len(m.overcommits.nodes) }

// Overcommits is the number of pods that the API showed bound, since the first
// decision, to a node that had no room for them.
func (m *Machine) Overcommits() int { return m.overcommits.pods }

// checkRoom notes whether the bound pods of the node still fit. p is the pod that was
// just bound there, nil where another change brought this about.
func (m *Machine) checkRoom(node string, p *object.Pod) {
	row, ok := m.table.Find(node)
	if !ok {
		delete(m.overcommits.nodes, node)
		return
	}
	if _, over := m.table.Excess(row, nil); !over {
		delete(m.overcommits.nodes, node)
		return
	}
	m.overcommits.nodes[node] = true
	if p == nil || !m.overcommits.counted {
		return
	}
	if e, over := m.table.Excess(row, p); over {
		m.overcommits.pods++
		m.emit(Overcommitted{Pod: p, Node: node, Excess: e})
	}
}

// checkAllRooms notes anew which nodes are over-committed.
func (m *Machine) checkAllRooms() {
	clear(m.overcommits.nodes)
	for _, r := range m.table.All() {
		if m.table.Node(r) != nil {
			m.checkRoom(m.table.Name(r), nil)
		}
	}
}

// verifyRooms checks that exactly the over-committed nodes are noted.
func (m *Machine) verifyRooms() error {
	n := 0
	for _, r := range m.table.All() {
		if _, over := m.table.Excess(r, nil); over {
			n++
			if !m.overcommits.nodes[m.table.Name(r)] {
				return fmt.Errorf("node %q is over-committed, which is not noted", m.table.Name(r))
			}
		}
	}
	if n != len(m.overcommits.nodes) {
		return fmt.Errorf("%d nodes are over-committed, %d are noted", n, len(m.overcommits.nodes))
	}
	return nil
}

// Overcommitted tells of a pod that the API shows bound to a node without room for it.
// There is nothing to do about it.
type Overcommitted struct {
	Pod  *object.Pod
	Node string
	table.Excess
}

func (Overcommitted) effect() {}

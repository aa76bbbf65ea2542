package podtopologyspread

import (
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/core/table"
)

// NoNode stands for the location of a row without a node.
const NoNode = -1

// Nodes says where the nodes of all rows are by some topology keys. All who count by
// the same keys share one, and each counts for itself.
type Nodes struct {
	Locations[struct{}]
	// Moves changes whenever the location of a row does.
	Moves uint64

	rows     []int32
	revision uint64 // up to which the changes of nodes are followed
	domains  []Domain
}

// NewNodes returns those of a table by the keys. A label that is unique per node
// makes such nodes domains of their own, for as long as UniquePerNodeRevision stands.
func NewNodes(t *table.Table, keys []string) *Nodes {
	n := &Nodes{}
	n.UniquePerNode = slices.IndexFunc(keys, t.UniquePerNode)
	for _, key := range keys {
		n.Topologies = append(n.Topologies, Topology[struct{}]{Key: key})
	}
	return n
}

// UniqueKey is the label by which nodes are domains of their own, "" for none.
func (n *Nodes) UniqueKey() string {
	if n.UniquePerNode < 0 {
		return ""
	}
	return n.Topologies[n.UniquePerNode].Key
}

// LocationOf is the location of the row, NoNode where there is no node.
func (n *Nodes) LocationOf(r table.Row) int32 { return n.rows[r] }

// Follow brings the locations up to the table.
func (n *Nodes) Follow(t *table.Table) {
	for len(n.rows) < t.Rows() {
		n.rows = append(n.rows, NoNode)
	}
	t.NodesChanged(n.revision, func(r table.Row) bool {
		n.move(t, r)
		return true
	})
	n.revision = t.Revision()
}

// move puts the row where its node is now.
func (n *Nodes) move(t *table.Table, r table.Row) {
	was, is := n.rows[r], int32(NoNode)
	if node := t.Node(r); node != nil {
		n.domains = n.domains[:0]
		for i := range n.Topologies {
			n.domains = append(n.domains, n.DomainOf(t, node, i))
		}
		is = n.Join(n.domains)
	}
	if was != NoNode {
		n.Leave(was)
	}
	if was != is {
		n.rows[r] = is
		n.Moves++
	}
}

// sharedNodesKept bounds the sets of keys of Shared.
const sharedNodesKept = 64

// Shared finds Nodes by their keys, for one table at a time. The zero value is
// ready to use.
type Shared struct {
	table    *table.Table
	revision uint64 // UniquePerNodeRevision
	byKeys   map[string]*Nodes
}

// Nodes returns those of the table by the keys, which it sorts.
func (s *Shared) Nodes(t *table.Table, keys []string) *Nodes {
	if s.table != t || s.revision != t.UniquePerNodeRevision() || len(s.byKeys) >= sharedNodesKept {
		*s = Shared{t, t.UniquePerNodeRevision(), map[string]*Nodes{}}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	name := strings.Join(keys, "\x00")
	n := s.byKeys[name]
	if n == nil {
		n = NewNodes(t, slices.Clone(keys))
		s.byKeys[name] = n
	}
	return n
}

package nominations

import (
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Nominator returns which pods are nominated to which nodes.
type Nominator interface {
	// NominatedTo returns the pods nominated to the node. The slice is not changed later;
	// callers may not write it.
	NominatedTo(node string) []*object.Pod
	// NominatedNodes returns the names of the nodes that pods are nominated to, in no
	// order.
	NominatedNodes() []string
	// NominatedNode returns the node that the pod is nominated to, "" for none.
	NominatedNode(uid types.UID) string
	// Renominated returns the nodes whose nominations changed after the revision since, and the
	// present revision. known is false if changes so old are not known any more.
	Renominated(since uint64) (nodes []string, now uint64, known bool)
}

// changed returns the nodes whose nominations may have changed after the revision since, and the
// present revision. If the changes are not known, known is false and nodes are all that have
// nominations now.
func changed(n Nominator, since uint64) (nodes []string, now uint64, known bool) {
	if nodes, now, known = n.Renominated(since); !known {
		nodes = n.NominatedNodes()
	}
	return nodes, now, known
}

// Rows lists the nominated pods by the row of their node, so that a decision need not look
// nodes up by name. Follow brings it up to date. The zero value is ready to use.
type Rows struct {
	list     []Node
	at       []int32 // by row: index in list plus one; 0: nothing is nominated
	revision uint64  // of the nominations
	nodes    uint64  // the table's NodeRevision
	known    bool    // list is complete as of revision
}

// Node is a row with the pods that are nominated to it.
type Node struct {
	Row             table.Row
	Pods            []*object.Pod
	highest, lowest int32 // highest and lowest of the pods' priorities
}

// Follow brings the rows up to date with the nominations and the table's nodes. It returns
// all rows that pods are nominated to, in any order. They are valid until the next Follow.
func (x *Rows) Follow(t *table.Table, n Nominator) []Node {
	nodes, now, known := changed(n, x.revision)
	if known = known && x.known && x.nodes == t.NodeRevision(); !known {
		nodes = n.NominatedNodes()
		*x = Rows{list: x.list[:0], at: make([]int32, t.Rows()), nodes: t.NodeRevision(), known: true}
	}
	for _, name := range nodes {
		if r, ok := t.Find(name); ok {
			x.set(r, n.NominatedTo(name))
		}
	}
	x.revision = now
	return x.list
}

// set replaces the list of pods nominated to the row. An empty list removes the row.
func (x *Rows) set(r table.Row, pods []*object.Pod) {
	at := int(x.at[r]) - 1
	switch {
	case len(pods) == 0 && at >= 0: // the last one of the list takes its place
		last := len(x.list) - 1
		x.list[at] = x.list[last]
		x.at[x.list[at].Row], x.at[r] = int32(at)+1, 0
		x.list[last] = Node{}
		x.list = x.list[:last]
		return
	case len(pods) == 0:
		return
	case at < 0:
		at = len(x.list)
		x.list, x.at[r] = append(x.list, Node{}), int32(at)+1
	}
	n := Node{Row: r, Pods: pods, highest: math.MinInt32, lowest: math.MaxInt32}
	for _, p := range pods {
		n.highest, n.lowest = max(n.highest, p.Priority), min(n.lowest, p.Priority)
	}
	x.list[at] = n
}

// On returns row r with the pods nominated to its node, nil if there are none. It is valid until
// the next Follow.
func (x *Rows) On(r table.Row) *Node {
	if int(r) < len(x.at) && x.at[r] > 0 {
		return &x.list[x.at[r]-1]
	}
	return nil
}

// Concerns reports whether one of the nominated pods has at least the priority, so that it may
// count against a pod of that priority.
func (n *Node) Concerns(priority int32) bool { return n.highest >= priority }

// Against returns those of the nominated pods that count against pod: pods other than itself, of at
// least its priority. own is the row that pod itself is nominated to, -1 if none. The slice may be
// n.Pods.
func (n *Node) Against(pod *object.Pod, own table.Row) []*object.Pod {
	switch {
	case !n.Concerns(pod.Priority):
		return nil
	case n.lowest >= pod.Priority && n.Row != own:
		return n.Pods
	}
	return slices.DeleteFunc(slices.Clone(n.Pods), func(p *object.Pod) bool {
		return p.UID == pod.UID || p.Priority < pod.Priority
	})
}

package engine

import (
	"math"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// nominatedNodes is the rows that pods are nominated to, kept from one decision to the
// next: where many are nominated, most count against few pods.
type nominatedNodes struct {
	list     []nominatedNode
	at       map[string]int // of the list, by name
	revision uint64         // of the nominations
	nodes    uint64         // the table's NodeRevision
}

type nominatedNode struct {
	name    string
	row     table.Row // -1: there is no such node
	pods    []*object.Pod
	highest int32 // their highest priority
}

// follow brings the list up to date.
func (l *nominatedNodes) follow(t *table.Table, n Nominator) {
	nodes, now, known := changedNominations(n, l.revision)
	if known = known && l.at != nil && l.nodes == t.NodeRevision(); !known {
		nodes = n.NominatedNodes()
		l.list, l.at, l.nodes = l.list[:0], map[string]int{}, t.NodeRevision()
	}
	for _, name := range nodes {
		l.set(t, n, name)
	}
	l.revision = now
}

// set looks again at who is nominated to the node.
func (l *nominatedNodes) set(t *table.Table, n Nominator, name string) {
	at, known := l.at[name]
	pods := n.NominatedTo(name)
	switch {
	case len(pods) == 0 && known: // the last one of the list takes its place
		last := len(l.list) - 1
		l.list[at] = l.list[last]
		l.at[l.list[at].name] = at
		l.list = l.list[:last]
		delete(l.at, name)
		return
	case len(pods) == 0:
		return
	case !known:
		at = len(l.list)
		l.list, l.at[name] = append(l.list, nominatedNode{name: name}), at
	}
	node := &l.list[at]
	node.row, node.pods, node.highest = -1, pods, math.MinInt32
	if r, ok := t.Find(name); ok {
		node.row = r
	}
	for _, p := range pods {
		node.highest = max(node.highest, p.Priority)
	}
}

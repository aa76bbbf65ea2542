package table

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
)

// nodeTaints numbers the lists of taints that nodes have: nodes with equal lists have
// the same number. A number that no node has any more is given again.
type nodeTaints struct {
	ofRow  []int32 // 0: no taints
	lists  map[string]int32
	nodes  []int32  // by number, how many nodes have the list
	keys   []string // by number
	free   []int32
	keyBuf []byte
}

func newNodeTaints() nodeTaints {
	return nodeTaints{lists: map[string]int32{}, nodes: []int32{0}, keys: []string{""}}
}

// TaintList is the number of the node's list of taints, which is that of all nodes
// with the same; 0 where there are no taints, or no node.
func (t *Table) TaintList(r Row) int32 { return t.nodeTaints.ofRow[r] }

// set takes in the row's node, nil for none.
func (l *nodeTaints) set(r Row, n *object.Node) {
	was, is := l.ofRow[r], int32(0)
	if n != nil && len(n.Taints) > 0 {
		is = l.hold(n.Taints)
	}
	l.ofRow[r] = is
	if was == 0 {
		return
	}
	if l.nodes[was]--; l.nodes[was] == 0 {
		delete(l.lists, l.keys[was])
		l.keys[was], l.free = "", append(l.free, was)
	}
}

// hold is the number of the list, for one node more.
func (l *nodeTaints) hold(taints []v1.Taint) int32 {
	l.keyBuf = appendTaints(l.keyBuf[:0], taints)
	id, known := l.lists[string(l.keyBuf)]
	if !known {
		if n := len(l.free); n > 0 {
			id, l.free = l.free[n-1], l.free[:n-1]
		} else {
			id = int32(len(l.nodes))
			l.nodes, l.keys = append(l.nodes, 0), append(l.keys, "")
		}
		l.keys[id] = string(l.keyBuf)
		l.lists[l.keys[id]] = id
	}
	l.nodes[id]++
	return id
}

func appendTaints(key []byte, taints []v1.Taint) []byte {
	for i := range taints {
		key = match.AppendField(key, taints[i].Key)
		key = match.AppendField(key, taints[i].Value)
		key = match.AppendField(key, string(taints[i].Effect))
	}
	return key
}

// checkNodeTaints compares the numbers with the nodes.
func (t *Table) checkNodeTaints() error {
	held := 0
	for r, n := range t.nodes {
		id, key := t.nodeTaints.ofRow[r], ""
		if n != nil {
			key = string(appendTaints(nil, n.Taints))
		}
		if id != 0 {
			held++
		}
		if t.nodeTaints.keys[id] != key || key != "" && t.nodeTaints.lists[key] != id {
			return fmt.Errorf("table: node %q has taints %q, numbered %d %q", t.names[r], key, id, t.nodeTaints.keys[id])
		}
	}
	for _, n := range t.nodeTaints.nodes {
		held -= int(n)
	}
	if held != 0 {
		return fmt.Errorf("table: %d nodes more have taints than are counted", held)
	}
	return nil
}

package nodelabels

import (
	"maps"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
)

// keysCounted is the most label keys whose values are counted at one time.
const keysCounted = 16

// labelValues counts the nodes that have one label key, by value.
type labelValues struct {
	nodes  map[string]int // by value
	total  int            // nodes that have the label
	relied bool           // UniquePerNode returned true for the label
}

// UniquePerNode reports whether the label has more than half as many values as nodes have it,
// so that most nodes are alone, or nearly so, with their value. It is true of
// kubernetes.io/hostname whatever its values. The index counts a label's values from the first
// call for it. It counts only keysCounted labels at one time, and returns false for any other.
func (x *Index) UniquePerNode(key string) bool {
	v := x.counted(key)
	if v == nil || key != v1.LabelHostname && 2*len(v.nodes) <= v.total {
		return false
	}
	v.relied = true
	return true
}

// counted returns the numbers of nodes by value of the label. The first call for a label counts
// all nodes. It returns nil if keysCounted other labels are counted that nodes have.
func (x *Index) counted(key string) *labelValues {
	if v := x.values[key]; v != nil {
		return v
	}
	if len(x.values) == keysCounted {
		maps.DeleteFunc(x.values, func(key string, v *labelValues) bool { return v.total == 0 })
	}
	if len(x.values) == keysCounted {
		return nil
	}
	v := &labelValues{nodes: map[string]int{}}
	for _, r := range x.table.All() {
		if value, has := label(x.table.Node(r), key); has {
			v.add(value, 1)
		}
	}
	x.values[key] = v
	return v
}

// NodesWithUnique returns the number of nodes that have the label with this value; 0 for a
// label for which UniquePerNode has not returned true.
func (x *Index) NodesWithUnique(key, value string) int {
	if v := x.values[key]; v != nil && v.relied {
		return v.nodes[value]
	}
	return 0
}

// UniqueRevision returns a number that changes whenever a node begins or ceases to share
// its value of a label with another, for labels for which UniquePerNode has returned true.
func (x *Index) UniqueRevision() uint64 { return x.uniqueRevision }

// setValues updates the counts for a node that changed from old to now, and raises
// uniqueRevision if need be; nil stands for no node.
func (x *Index) setValues(old, now *object.Node) {
	for key, v := range x.values { // any order: each on its own, and a sum
		was, had := label(old, key)
		is, has := label(now, key)
		if had == has && was == is {
			continue
		}
		crossed := had && v.add(was, -1)
		crossed = has && v.add(is, 1) || crossed
		if crossed && v.relied {
			x.uniqueRevision++
		}
	}
}

// add adds n, 1 or -1, to the number of nodes with the value. It reports whether the value
// began or ceased to be shared by several nodes.
func (v *labelValues) add(value string, n int) bool {
	before := v.nodes[value]
	v.nodes[value] = before + n
	v.total += n
	if before+n == 0 {
		delete(v.nodes, value)
	}
	return (before > 1) != (before+n > 1)
}

// label returns the node's value of the label and whether it has the label. n may be nil.
func label(n *object.Node, key string) (string, bool) {
	if n == nil {
		return "", false
	}
	value, ok := n.Labels[key]
	return value, ok
}

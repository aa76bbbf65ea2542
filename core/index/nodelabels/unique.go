package nodelabels

import (
	"maps"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
)

// keysCounted bounds the labels of which the values are counted.
const keysCounted = 16

// labelValues counts the nodes that have a label, by its value.
type labelValues struct {
	nodes  map[string]int
	total  int
	relied bool // UniquePerNode returned true for the label
}

// UniquePerNode reports whether more than half of the nodes that have the label have a
// value that no other node has. The hostname always counts as such a label. The index
// counts a label's values from the first question about it. It counts only a few labels
// at one time, and returns false for any other.
func (x *Index) UniquePerNode(key string) bool {
	v := x.counted(key)
	if v == nil || key != v1.LabelHostname && 2*len(v.nodes) <= v.total {
		return false
	}
	v.relied = true
	return true
}

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

// NodesWithUnique returns the number of nodes that have the label with this value; 0 for
// a label that UniquePerNode was not true of.
func (x *Index) NodesWithUnique(key, value string) int {
	if v := x.values[key]; v != nil && v.relied {
		return v.nodes[value]
	}
	return 0
}

// UniqueRevision returns a number that changes whenever a node starts or ends to
// share its value of a label with another, for labels that UniquePerNode was true of.
func (x *Index) UniqueRevision() uint64 { return x.uniqueRevision }

// setValues counts the values of a node that changed from old to now; nil for none.
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

// add adds n nodes, 1 or -1, to the value. It reports whether a node began or ended to
// share the value.
func (v *labelValues) add(value string, n int) bool {
	before := v.nodes[value]
	v.nodes[value] = before + n
	v.total += n
	if before+n == 0 {
		delete(v.nodes, value)
	}
	return (before > 1) != (before+n > 1)
}

func label(n *object.Node, key string) (string, bool) {
	if n == nil {
		return "", false
	}
	value, ok := n.Labels[key]
	return value, ok
}

package table

import (
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
)

// keysCounted bounds the labels of which the values are counted.
const keysCounted = 16

// uniquePerNode knows the labels of which, as a rule, each node has a value of its
// own, as of kubernetes.io/hostname. A plugin that relies on it looks here.
type uniquePerNode struct {
	byKey    map[string]*labelValues
	revision uint64
}

// labelValues counts the nodes that have a label, by its value.
type labelValues struct {
	nodes  map[string]int
	total  int
	relied bool // UniquePerNode returned true for the label
}

// UniquePerNode reports whether more than half of the nodes that have the label have a
// value that no other node has. The hostname always counts as such a label. The table
// counts a label's values from the first question about it. It counts only a few labels
// at one time, and returns false for any other.
func (t *Table) UniquePerNode(key string) bool {
	v := t.counted(key)
	if v == nil || key != v1.LabelHostname && 2*len(v.nodes) <= v.total {
		return false
	}
	v.relied = true
	return true
}

func (t *Table) counted(key string) *labelValues {
	if v := t.uniquePerNode.byKey[key]; v != nil {
		return v
	}
	if len(t.uniquePerNode.byKey) == keysCounted {
		maps.DeleteFunc(t.uniquePerNode.byKey, func(key string, v *labelValues) bool { return v.total == 0 })
	}
	if len(t.uniquePerNode.byKey) == keysCounted {
		return nil
	}
	v := &labelValues{nodes: map[string]int{}}
	for _, n := range t.nodes {
		if value, has := label(n, key); has {
			v.add(value, 1)
		}
	}
	t.uniquePerNode.byKey[key] = v
	return v
}

// NodesWithUnique returns the number of nodes that have the label with this value; 0 for
// a label that UniquePerNode was not true of.
func (t *Table) NodesWithUnique(key, value string) int {
	if v := t.uniquePerNode.byKey[key]; v != nil && v.relied {
		return v.nodes[value]
	}
	return 0
}

// UniquePerNodeRevision returns a number that changes whenever a node starts or ends to
// share its value of a label with another, for labels that UniquePerNode was true of.
func (t *Table) UniquePerNodeRevision() uint64 { return t.uniquePerNode.revision }

func (t *Table) setLabels(old, now *object.Node) {
	for key, v := range t.uniquePerNode.byKey { // any order: each on its own, and a sum
		was, had := label(old, key)
		is, has := label(now, key)
		if had == has && was == is {
			continue
		}
		crossed := had && v.add(was, -1)
		crossed = has && v.add(is, 1) || crossed
		if crossed && v.relied {
			t.uniquePerNode.revision++
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

func (t *Table) compareLabels(fresh *Table) error {
	for key, v := range t.uniquePerNode.byKey { // any order: an error is an error
		if o := fresh.counted(key); o == nil || v.total != o.total || !maps.Equal(v.nodes, o.nodes) {
			return fmt.Errorf("table: nodes by label %s: %v, rebuilt %v", key, v, o)
		}
	}
	return nil
}

package table

import (
	"fmt"
	"maps"

	"github.com/berth-scheduler/berth/core/object"
)

// labelKeys counts the nodes that have a label, by its key. Pods may name thousands of keys
// that no node has: these cost one look here, and nothing for each node.
type labelKeys struct {
	nodes    map[string]int
	revision uint64 // changes when a node is the first to have a label
}

// HasLabelKey reports whether a node has a label with the key.
func (t *Table) HasLabelKey(key string) bool { return t.labelKeys.nodes[key] > 0 }

// LabelKeysRevision changes when a node is the first to have a label.
func (t *Table) LabelKeysRevision() uint64 { return t.labelKeys.revision }

func (k *labelKeys) set(old, now *object.Node) {
	if old != nil && now != nil && maps.Equal(old.Labels, now.Labels) {
		return
	}
	k.count(now, 1)
	k.count(old, -1)
}

func (k *labelKeys) count(n *object.Node, sign int) {
	if n == nil {
		return
	}
	for key := range n.Labels { // any order: each by itself
		switch k.nodes[key] += sign; {
		case k.nodes[key] == 0:
			delete(k.nodes, key)
		case k.nodes[key] == 1 && sign > 0:
			k.revision++
		}
	}
}

// recount counts the nodes anew.
func (k *labelKeys) recount(nodes []*object.Node) {
	k.nodes = map[string]int{}
	k.revision++
	for _, n := range nodes {
		k.count(n, 1)
	}
}

func (t *Table) checkLabelKeys() error {
	var fresh labelKeys
	fresh.recount(t.nodes)
	if !maps.Equal(fresh.nodes, t.labelKeys.nodes) {
		return fmt.Errorf("table: nodes by the keys of their labels: %v, counted anew %v", t.labelKeys.nodes, fresh.nodes)
	}
	return nil
}

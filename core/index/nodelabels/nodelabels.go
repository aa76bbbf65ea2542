// Package nodelabels keeps which labels a table's nodes have, and which of these have about as
// many values as nodes.
package nodelabels

import (
	"fmt"
	"maps"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Index counts the nodes that have a label, by key. Pods may name thousands of keys that no
// node has: these cost one lookup here, and nothing for each node.
type Index struct {
	table        *table.Table
	nodes        map[string]int // number of nodes by label key
	keysRevision uint64         // see KeysRevision
	// values are the counts by value, by label key, of labels that UniquePerNode was asked
	// about.
	values         map[string]*labelValues
	uniqueRevision uint64 // see UniqueRevision
}

// index registers the Index, so that every table has one.
var index = table.Follow(func(t *table.Table) table.Follower[*Index] {
	x := &Index{table: t, nodes: map[string]int{}, values: map[string]*labelValues{}, keysRevision: t.Epoch(), uniqueRevision: t.Epoch()}
	return table.Follower[*Index]{Index: x, NodeChanged: x.follow, Check: x.check}
})

// Of returns the table's index of its nodes' labels.
func Of(t *table.Table) *Index { return index.Of(t) }

// HasKey reports whether any node has a label with the key.
func (x *Index) HasKey(key string) bool { return x.nodes[key] > 0 }

// KeysRevision returns a number that changes when a node is the first to have a label key. It
// does not change when the last such node goes.
func (x *Index) KeysRevision() uint64 { return x.keysRevision }

// follow updates the index for a node that changed from was to is; nil stands for no node.
func (x *Index) follow(_ table.Row, was, is *object.Node) {
	if was != nil && is != nil && maps.Equal(was.Labels, is.Labels) {
		return
	}
	x.count(is, 1)
	x.count(was, -1)
	x.setValues(was, is)
}

// count adds sign (1 or -1) to the number of nodes for each label key of the node, which
// may be nil.
func (x *Index) count(n *object.Node, sign int) {
	if n == nil {
		return
	}
	for key := range n.Labels { // any order: each by itself
		switch x.nodes[key] += sign; {
		case x.nodes[key] == 0:
			delete(x.nodes, key)
		case x.nodes[key] == 1 && sign > 0:
			x.keysRevision++
		}
	}
}

// check returns an error if the counts differ from those of a fresh table.
func (x *Index) check(fresh *Index) error {
	if !maps.Equal(fresh.nodes, x.nodes) {
		return fmt.Errorf("nodes by the keys of their labels: %v, rebuilt %v", x.nodes, fresh.nodes)
	}
	for key, v := range x.values { // any order: an error is an error
		if o := fresh.counted(key); o == nil || v.total != o.total || !maps.Equal(v.nodes, o.nodes) {
			return fmt.Errorf("nodes by label %s: %v, rebuilt %v", key, v, o)
		}
	}
	return nil
}

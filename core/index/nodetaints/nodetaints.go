// Package nodetaints numbers the taints of a table's nodes, so that those of a node are a set of
// numbers.
package nodetaints

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Set is a set of taints of nodes, by number.
type Set uint64

const (
	mostTaints = 63 // that have numbers at one time
	// Others is in the set of a node that has taints without a number, or one taint twice.
	Others Set = 1 << mostTaints
)

// Index numbers the taints that nodes have. A number that no node has any more is given
// again once there is no other left: taints that come and go keep theirs.
type Index struct {
	table    *table.Table
	sets     []Set // by row
	numbers  map[string]int
	taints   []v1.Taint // by number
	keys     []string   // by number
	nodes    []int32    // by number: how many nodes have the taint
	others   int        // nodes with Others
	revision uint64
	keyBuf   []byte
}

var index = table.Follow(func(t *table.Table) table.Follower[*Index] {
	l := &Index{table: t, numbers: map[string]int{}, revision: t.Epoch()}
	return table.Follower[*Index]{Index: l, NodeChanged: l.set, Check: l.check}
})

// Of returns the table's index.
func Of(t *table.Table) *Index { return index.Of(t) }

// Sets returns the column of the taints that nodes have. Read only.
func (l *Index) Sets() []Set { return l.sets }

// Numbered returns the taints that have numbers, by number. It may be that no node has one.
// Read only.
func (l *Index) Numbered() []v1.Taint { return l.taints }

// Revision grows whenever a number begins to stand for another taint, or AnyOthers changes.
func (l *Index) Revision() uint64 { return l.revision }

// AnyOthers reports whether a node has Others.
func (l *Index) AnyOthers() bool { return l.others > 0 }

// set replaces the taints of the row's node; nil for no node.
func (l *Index) set(r table.Row, _, n *object.Node) {
	l.sets = table.Reach(l.sets, r)
	was, is := l.sets[r], Set(0)
	if n != nil {
		for i := range n.Taints {
			taint := l.number(&n.Taints[i])
			if is&taint != 0 {
				taint = Others
			}
			is |= taint
		}
	}
	l.sets[r] = is
	any := l.others > 0
	if was&Others != 0 {
		l.others--
	}
	if is&Others != 0 {
		l.others++
	}
	if any != (l.others > 0) {
		l.revision++
	}
	for i := range l.taints {
		switch taint := Set(1) << i; {
		case is&taint != 0 && was&taint == 0:
			l.nodes[i]++
		case was&taint != 0 && is&taint == 0:
			l.nodes[i]--
		}
	}
}

// number returns the set of the taint alone, or Others where no number is left.
func (l *Index) number(taint *v1.Taint) Set {
	l.keyBuf = appendTaint(l.keyBuf[:0], taint)
	if i, known := l.numbers[string(l.keyBuf)]; known {
		return 1 << i
	}
	if len(l.keys) < mostTaints {
		l.taints, l.keys, l.nodes = append(l.taints, v1.Taint{}), append(l.keys, ""), append(l.nodes, 0)
		return l.give(len(l.keys)-1, taint)
	}
	for i, nodes := range l.nodes {
		if nodes == 0 {
			delete(l.numbers, l.keys[i])
			return l.give(i, taint)
		}
	}
	return Others
}

func (l *Index) give(i int, taint *v1.Taint) Set {
	l.taints[i], l.keys[i] = *taint, string(l.keyBuf)
	l.numbers[l.keys[i]] = i
	l.revision++
	return 1 << i
}

func appendTaint(key []byte, taint *v1.Taint) []byte {
	key = match.AppendField(key, taint.Key)
	key = match.AppendField(key, taint.Value)
	key = match.AppendField(key, string(taint.Effect))
	return key
}

// check compares the numbers with the nodes: which there are depends on the past.
func (l *Index) check(*Index) error {
	nodes, others := make([]int32, len(l.nodes)), 0
	for r, is := range l.sets {
		want, other := Set(0), Set(0)
		n := l.table.Node(table.Row(r))
		for i := 0; n != nil && i < len(n.Taints); i++ {
			number, known := l.numbers[string(appendTaint(nil, &n.Taints[i]))]
			if taint := Set(1) << number; !known || want&taint != 0 {
				other = Others
			} else {
				want |= taint
			}
		}
		// A taint may have got its number after the node came.
		if is&Others == 0 && is != want|other || is&^Others&^want != 0 {
			return fmt.Errorf("node %q has the taints %b, numbered %b", l.table.Name(table.Row(r)), want|other, is)
		}
		for i := range nodes {
			nodes[i] += int32(is >> i & 1) // #nosec G115 -- 0 or 1
		}
		others += int(is >> mostTaints) // #nosec G115 -- 0 or 1
	}
	if others != l.others || len(l.sets) != l.table.Rows() {
		return fmt.Errorf("%d of %d nodes have others, counted %d of %d", others, l.table.Rows(), l.others, len(l.sets))
	}
	for i, n := range l.nodes {
		if n != nodes[i] || l.keys[i] != string(appendTaint(nil, &l.taints[i])) || l.numbers[l.keys[i]] != i {
			return fmt.Errorf("taint %v has number %d and is counted on %d nodes, recounted on %d", l.taints[i], i, n, nodes[i])
		}
	}
	return nil
}

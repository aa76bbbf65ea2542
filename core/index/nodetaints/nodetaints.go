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

// Set is a set of node taints as bits, so that a pod's tolerations can be compared with a
// node's taints in one operation: bit i stands for taint number i, the highest for Others.
type Set uint64

const (
	mostTaints = 63 // most taints that have numbers at one time
	// Others is in the set of a node that has taints without a number, or one taint twice.
	Others Set = 1 << mostTaints
)

// Index gives the taints that nodes have small numbers, so that those of a node are a Set.
// A taint that no node has any more keeps its number until another taint needs one and
// none is left.
type Index struct {
	table    *table.Table
	sets     []Set          // by row
	numbers  map[string]int // number by key
	taints   []v1.Taint     // by number
	keys     []string       // appendTaint's, by number
	nodes    []int32        // number of nodes that have the taint, by number
	others   int            // number of nodes with Others
	revision uint64         // see Revision
	keyBuf   []byte         // scratch of number
}

// index registers the Index, so that every table has one.
var index = table.Follow(func(t *table.Table) table.Follower[*Index] {
	l := &Index{table: t, numbers: map[string]int{}, revision: t.Epoch()}
	return table.Follower[*Index]{Index: l, NodeChanged: l.set, Check: l.check}
})

// Of returns the table's index of its nodes' taints.
func Of(t *table.Table) *Index { return index.Of(t) }

// Sets returns the taints of each row's node, by row. Read only.
func (l *Index) Sets() []Set { return l.sets }

// Numbered returns the taints by number. A taint may be left that no node has any more.
// Read only.
func (l *Index) Numbered() []v1.Taint { return l.taints }

// Revision returns a number that grows whenever a number begins to stand for a taint, or
// AnyOthers changes.
func (l *Index) Revision() uint64 { return l.revision }

// AnyOthers reports whether some node has Others: taints that Sets does not tell apart.
func (l *Index) AnyOthers() bool { return l.others > 0 }

// set records the taints of the row's node n, and gives numbers to those that have none; nil
// stands for no node.
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

// number returns the set with the taint alone. If the taint has no number, it gets one, which
// may be that of a taint that no node has any more. The result is Others if no number is left.
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

// give makes i the number of the taint, whose key is in keyBuf, and returns the Set with
// that taint alone.
func (l *Index) give(i int, taint *v1.Taint) Set {
	l.taints[i], l.keys[i] = *taint, string(l.keyBuf)
	l.numbers[l.keys[i]] = i
	l.revision++
	return 1 << i
}

// appendTaint appends a key that is equal for taints with equal key, value and effect.
func appendTaint(key []byte, taint *v1.Taint) []byte {
	key = match.AppendField(key, taint.Key)
	key = match.AppendField(key, taint.Value)
	key = match.AppendField(key, string(taint.Effect))
	return key
}

// check returns an error if sets and counts do not agree with the nodes. The numbers
// themselves depend on history and are not compared.
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

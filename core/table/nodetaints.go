package table

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
)

// TaintSet is a set of taints of nodes, by number.
type TaintSet uint64

const (
	mostTaints = 63 // that have numbers at one time
	// OtherTaints is in the set of a node that has taints without a number, or one
	// taint twice.
	OtherTaints TaintSet = 1 << mostTaints
)

// nodeTaints numbers the taints that nodes have. A number that no node has any more is
// given again once there is no other left: taints that come and go keep theirs.
type nodeTaints struct {
	ofRow   []TaintSet
	numbers map[string]int
	taints  []v1.Taint // by number
	keys    []string   // by number
	nodes   []int32    // by number: how many nodes have the taint
	others  int        // nodes with OtherTaints
	changes uint64     // of what numbers stand for, and of whether there are others
	keyBuf  []byte
}

func newNodeTaints() nodeTaints { return nodeTaints{numbers: map[string]int{}} }

// TaintsOf returns the taints of the row's node.
func (t *Table) TaintsOf(r Row) TaintSet { return t.nodeTaints.ofRow[r] }

// Taints returns the taints that have numbers, by number. It may be that no node has one.
// Read only.
func (t *Table) Taints() []v1.Taint { return t.nodeTaints.taints }

// TaintsRevision grows whenever a number begins to stand for another taint, or AnyOtherTaints
// changes.
func (t *Table) TaintsRevision() uint64 { return t.nodeTaints.changes }

// AnyOtherTaints reports whether a node has OtherTaints.
func (t *Table) AnyOtherTaints() bool { return t.nodeTaints.others > 0 }

// set replaces the taints of the row's node; nil for no node.
func (l *nodeTaints) set(r Row, n *object.Node) {
	was, is := l.ofRow[r], TaintSet(0)
	if n != nil {
		for i := range n.Taints {
			taint := l.number(&n.Taints[i])
			if is&taint != 0 {
				taint = OtherTaints
			}
			is |= taint
		}
	}
	l.ofRow[r] = is
	any := l.others > 0
	if was&OtherTaints != 0 {
		l.others--
	}
	if is&OtherTaints != 0 {
		l.others++
	}
	if any != (l.others > 0) {
		l.changes++
	}
	for i := range l.taints {
		switch taint := TaintSet(1) << i; {
		case is&taint != 0 && was&taint == 0:
			l.nodes[i]++
		case was&taint != 0 && is&taint == 0:
			l.nodes[i]--
		}
	}
}

// number returns the set of the taint alone, or OtherTaints where no number is left.
func (l *nodeTaints) number(taint *v1.Taint) TaintSet {
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
	return OtherTaints
}

func (l *nodeTaints) give(i int, taint *v1.Taint) TaintSet {
	l.taints[i], l.keys[i] = *taint, string(l.keyBuf)
	l.numbers[l.keys[i]] = i
	l.changes++
	return 1 << i
}

func appendTaint(key []byte, taint *v1.Taint) []byte {
	key = match.AppendField(key, taint.Key)
	key = match.AppendField(key, taint.Value)
	key = match.AppendField(key, string(taint.Effect))
	return key
}

// checkNodeTaints compares the numbers with the nodes.
func (t *Table) checkNodeTaints() error {
	l, nodes, withOthers := &t.nodeTaints, map[int]int32{}, 0
	for r, n := range t.nodes {
		want, others := TaintSet(0), TaintSet(0)
		for i := 0; n != nil && i < len(n.Taints); i++ {
			number, known := l.numbers[string(appendTaint(nil, &n.Taints[i]))]
			if taint := TaintSet(1) << number; !known || want&taint != 0 {
				others = OtherTaints
			} else {
				want |= taint
				nodes[number]++
			}
		}
		if l.ofRow[r]&OtherTaints != 0 {
			withOthers++
		}
		// A taint may have got its number after the node came.
		if is := l.ofRow[r]; is&OtherTaints == 0 && is != want|others || is&^OtherTaints&^want != 0 {
			return fmt.Errorf("table: node %q has the taints %b, numbered %b", t.names[r], want|others, is)
		}
	}
	if withOthers != l.others {
		return fmt.Errorf("table: %d nodes have other taints, counted %d", withOthers, l.others)
	}
	for i, n := range l.nodes {
		if n > nodes[i] || l.keys[i] != string(appendTaint(nil, &l.taints[i])) || l.numbers[l.keys[i]] != i {
			return fmt.Errorf("table: taint %v has number %d and is counted on %d nodes, recounted on %d", l.taints[i], i, n, nodes[i])
		}
	}
	return nil
}

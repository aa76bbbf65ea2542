package generate

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// changes makes the events of a world, each possible at the time it happens as
// far as the generator can know.
func (b *builder) changes(w World) []Change {
	var at []int
	for range b.IntN(13) {
		at = append(at, b.IntN(len(w.Pending)+1))
	}
	slices.Sort(at)
	l := lives{bound: slices.Clone(w.Bound), pending: slices.Clone(w.Pending)}
	var changes []Change
	for _, after := range at {
		var c Change
		switch n := b.IntN(10); {
		case b.mix.alters() && b.chance(50):
			c = b.alter(&w)
		case len(w.Namespaces) > 0 && b.chance(15):
			c = Change{Verb: Update, Namespace: namespace(b, w.Namespaces[b.IntN(len(w.Namespaces))].Name)}
		case n < 2 || len(b.nodes) == 0:
			c = b.changeNodes()
		case n < 5:
			c = b.updateNode()
		case n < 8:
			c = b.deletePod(&l, after)
		default:
			c = b.updatePod(&l, after)
		}
		if c.Verb != "" {
			c.After = after
			changes = append(changes, c)
		}
	}
	return changes
}

func (m *mix) alters() bool {
	return slices.ContainsFunc(m.features, func(f feature) bool { return f.alter != nil })
}

// alter asks one of the features that alter.
func (b *builder) alter(w *World) Change {
	var able []feature
	for _, f := range b.mix.features {
		if f.alter != nil {
			able = append(able, f)
		}
	}
	return able[b.IntN(len(able))].alter(b, w)
}

// lives is the pods that no change has deleted yet; a deleted pending pod
// leaves a nil behind, so that the positions stay.
type lives struct{ bound, pending []*v1.Pod }

func (b *builder) changeNodes() Change {
	if b.chance(60) || len(b.nodes) < 3 {
		n := b.node()
		b.nodes = append(b.nodes, n)
		return Change{Verb: Add, Node: n}
	}
	i := b.IntN(len(b.nodes))
	n := b.nodes[i]
	b.nodes = slices.Delete(b.nodes, i, i+1)
	return Change{Verb: Delete, Node: n}
}

func (b *builder) updateNode() Change {
	var able []feature
	for _, f := range b.mix.features {
		if f.renode != nil {
			able = append(able, f)
		}
	}
	i := b.IntN(len(b.nodes))
	n := b.nodes[i].DeepCopy()
	if len(able) == 0 || b.chance(10) {
		n.Spec.Unschedulable = !n.Spec.Unschedulable
	} else {
		able[b.IntN(len(able))].renode(b, n)
	}
	b.nodes[i] = n
	return Change{Verb: Update, Node: n}
}

func (b *builder) deletePod(l *lives, after int) Change {
	if len(l.bound) > 0 && b.chance(60) {
		i := b.IntN(len(l.bound))
		p := l.bound[i]
		l.bound = slices.Delete(l.bound, i, i+1)
		return Change{Verb: Delete, Pod: p}
	}
	if after == 0 {
		return Change{}
	}
	i := b.IntN(after)
	p := l.pending[i]
	l.pending[i] = nil
	if p == nil {
		return Change{}
	}
	return Change{Verb: Delete, Pod: p}
}

func (b *builder) updatePod(l *lives, after int) Change {
	var able []feature
	for _, f := range b.mix.features {
		if f.repod != nil {
			able = append(able, f)
		}
	}
	if len(able) > 0 && len(l.bound) > 0 && b.chance(40) {
		i := b.IntN(len(l.bound))
		p := l.bound[i].DeepCopy()
		able[b.IntN(len(able))].repod(b, p)
		l.bound[i] = p
		return Change{Verb: Update, Pod: p}
	}
	if len(able) == 0 || after == 0 {
		return Change{}
	}
	i := b.IntN(after)
	if l.pending[i] == nil {
		return Change{}
	}
	p := l.pending[i].DeepCopy()
	able[b.IntN(len(able))].repod(b, p)
	l.pending[i] = p
	return Change{Verb: Update, Pod: p}
}

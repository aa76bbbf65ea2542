package fix

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mostShapes bounds the shapes of nodes that are tried.
const mostShapes = 60

// newNodes tries one node more of each shape that is there, the smallest first.
func (s *search) newNodes() {
	found := 0
	for _, n := range s.shapes() {
		c := newCreation("v1", "Node", Copy(n))
		if s.table.Live() > 0 {
			if _, known := s.table.Find(c.name); known {
				continue
			}
		}
		if s.consider(join(s.base, []edit{{kind: addNode, create: c, say: "add a node like " + n.Name}})) {
			if found++; found == mostOfASort {
				return
			}
		}
	}
}

// shapes are nodes that differ in more than their names.
func (s *search) shapes() (shapes []*v1.Node) {
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		n := s.nodes[name]
		key := shapeOf(n)
		if !seen[key] {
			seen[key] = true
			shapes = append(shapes, n)
		}
	}
	slices.SortStableFunc(shapes, func(a, b *v1.Node) int {
		return cmp.Or(a.Status.Allocatable.Cpu().Cmp(*b.Status.Allocatable.Cpu()), a.Status.Allocatable.Memory().Cmp(*b.Status.Allocatable.Memory()), cmp.Compare(len(a.Status.Allocatable), len(b.Status.Allocatable)))
	})
	return shapes[:min(mostShapes, len(shapes))]
}

// shapeOf is equal for nodes that differ in their names alone.
func shapeOf(n *v1.Node) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(n.Status.Allocatable)) {
		q := n.Status.Allocatable[name]
		text += fmt.Sprintf("%s=%s,", name, q.String())
	}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		if key != v1.LabelHostname && n.Labels[key] != n.Name {
			text += fmt.Sprintf("%q=%q,", key, n.Labels[key])
		}
	}
	return text + fmt.Sprint(n.Status.DeclaredFeatures)
}

// Copy is an empty node of the same shape: schedulable, without taints, named
// NAME-copy.
func Copy(n *v1.Node) *v1.Node {
	c := &v1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: n.Name + "-copy", Labels: maps.Clone(n.Labels)},
		Status: v1.NodeStatus{
			Capacity: n.Status.Capacity.DeepCopy(), Allocatable: n.Status.Allocatable.DeepCopy(),
			DeclaredFeatures: slices.Clone(n.Status.DeclaredFeatures),
		},
	}
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	c.Labels[v1.LabelHostname] = c.Name
	return c
}

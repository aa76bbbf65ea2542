package table

import (
	"maps"

	"github.com/berth-scheduler/berth/core/object"
)

// namespaces are the namespaces that have labels. A selector treats a namespace
// without labels like one that does not exist.
type namespaces struct {
	labels   map[string]map[string]string
	revision uint64
}

// SetNamespace adds the namespace or replaces the one of its name; one that is
// gone has no labels. It returns those that it had.
func (t *Table) SetNamespace(n *object.Namespace) (before map[string]string) {
	before = t.namespaces.labels[n.Name]
	if maps.Equal(before, n.Labels) {
		return before
	}
	t.namespaces.revision++
	if len(n.Labels) == 0 {
		delete(t.namespaces.labels, n.Name)
		return before
	}
	t.namespaces.labels[n.Name] = n.Labels
	return before
}

// NamespaceLabels returns the labels of the namespace; nil where it has none or is
// not known. Read only.
func (t *Table) NamespaceLabels(name string) map[string]string { return t.namespaces.labels[name] }

// NamespaceRevision changes whenever the labels of a namespace do.
func (t *Table) NamespaceRevision() uint64 { return t.namespaces.revision }

// Namespaces returns the namespaces that have labels, in no order.
func (t *Table) Namespaces() []*object.Namespace {
	all := make([]*object.Namespace, 0, len(t.namespaces.labels))
	for name, labels := range t.namespaces.labels { // any order: so it says
		all = append(all, &object.Namespace{Name: name, Labels: labels})
	}
	return all
}

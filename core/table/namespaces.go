package table

import (
	"maps"

	"github.com/berth-scheduler/berth/core/object"
)

// Namespaces holds the labels of namespaces. A namespace without labels is treated like one
// that does not exist, as selectors do.
type Namespaces struct {
	labels   map[string]map[string]string // labels by key, by namespace
	revision uint64                       // number of changes
}

// Namespaces returns the namespaces that the table knows.
func (t *Table) Namespaces() *Namespaces { return &t.namespaces }

// Set sets the namespace's labels and returns those that it had. When a namespace was deleted,
// pass one without labels.
func (s *Namespaces) Set(n *object.Namespace) (before map[string]string) {
	before = s.labels[n.Name]
	if maps.Equal(before, n.Labels) {
		return before
	}
	s.revision++
	if len(n.Labels) == 0 {
		delete(s.labels, n.Name)
		return before
	}
	s.labels[n.Name] = n.Labels
	return before
}

// Labels returns the labels of the namespace; nil if it has none or is not known. Read
// only.
func (s *Namespaces) Labels(name string) map[string]string { return s.labels[name] }

// Revision returns a number that changes whenever the labels of a namespace do.
func (s *Namespaces) Revision() uint64 { return s.revision }

// List returns the namespaces that have labels, in no order.
func (s *Namespaces) List() []*object.Namespace {
	all := make([]*object.Namespace, 0, len(s.labels))
	for name, labels := range s.labels { // any order: so it says
		all = append(all, &object.Namespace{Name: name, Labels: labels})
	}
	return all
}

package table

import (
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// SelectorOwners holds the Services and controllers (ReplicaSets, StatefulSets, ...) by
// whose selectors pods are spread when they state no constraint.
type SelectorOwners struct {
	byName map[selectorOwnerName]*object.SelectorOwner
	// services lists each Service under one label of its selector, so that those of a pod
	// are found by its labels.
	services map[namespacedLabel][]*object.SelectorOwner
	revision uint64 // number of changes
}

// SelectorOwners returns the Services and controllers that the table knows.
func (t *Table) SelectorOwners() *SelectorOwners { return &t.selectorOwners }

// selectorOwnerName identifies a Service or controller.
type selectorOwnerName struct {
	kind            object.SelectorOwnerKind
	namespace, name string
}

// namespacedLabel is a label in a namespace.
type namespacedLabel struct{ namespace, key, value string }

// Set adds the Service or controller, or replaces the one of its kind and name, which it
// returns; nil: there was none.
func (s *SelectorOwners) Set(f *object.SelectorOwner) (old *object.SelectorOwner) {
	old = s.Remove(f.Kind, f.Namespace, f.Name)
	s.byName[selectorOwnerName{f.Kind, f.Namespace, f.Name}] = f
	s.revision++
	if at, ok := serviceLabel(f); ok {
		s.services[at] = append(s.services[at], f)
	}
	return old
}

// Revision returns a number that changes whenever a Service or controller does.
func (s *SelectorOwners) Revision() uint64 { return s.revision }

// Remove removes the Service or controller and returns it; nil if there was none.
func (s *SelectorOwners) Remove(kind object.SelectorOwnerKind, namespace, name string) *object.SelectorOwner {
	known := selectorOwnerName{kind, namespace, name}
	f := s.byName[known]
	if f == nil {
		return nil
	}
	delete(s.byName, known)
	s.revision++
	at, ok := serviceLabel(f)
	if !ok {
		return f
	}
	list := slices.DeleteFunc(s.services[at], func(o *object.SelectorOwner) bool { return o == f })
	if s.services[at] = list; len(list) == 0 {
		delete(s.services, at)
	}
	return f
}

// serviceLabel returns the label under which the Service is listed, that of its selector with
// the least key; false for other kinds, and for a Service without a selector, which has no
// pods.
func serviceLabel(f *object.SelectorOwner) (at namespacedLabel, ok bool) {
	if f.Kind != object.Service {
		return at, false
	}
	for k, v := range f.Labels { // any order: takes the least
		if !ok || k < at.key {
			at, ok = namespacedLabel{f.Namespace, k, v}, true
		}
	}
	return at, ok
}

// List returns all known Services and controllers, in no order.
func (s *SelectorOwners) List() []*object.SelectorOwner {
	all := make([]*object.SelectorOwner, 0, len(s.byName))
	for _, owner := range s.byName { // any order: so it says
		all = append(all, owner)
	}
	return all
}

// ControllerOf returns the controller that the pod names as its owner; nil if it names none of
// a kind that is known, or the table does not have it.
func (s *SelectorOwners) ControllerOf(p *object.Pod) *object.SelectorOwner {
	c := p.Controller
	if c.Kind == object.NoSelectorOwner {
		return nil
	}
	return s.byName[selectorOwnerName{c.Kind, p.Namespace, c.Name}]
}

// ServicesOf returns the Services that select the pod, in no particular order.
func (s *SelectorOwners) ServicesOf(p *object.Pod) []*object.SelectorOwner {
	if len(s.services) == 0 {
		return nil
	}
	var found []*object.SelectorOwner
	for k, v := range p.Labels { // any order: the result has none
		for _, f := range s.services[namespacedLabel{p.Namespace, k, v}] {
			if hasLabels(p, f.Labels) {
				found = append(found, f)
			}
		}
	}
	return found
}

// hasLabels reports whether the pod has all labels of set.
func hasLabels(p *object.Pod, set map[string]string) bool {
	for k, v := range set { // any order: all must hold
		if got, ok := p.Labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

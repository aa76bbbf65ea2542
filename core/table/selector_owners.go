package table

import (
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// selectorOwners are the Services and controllers whose pods belong together.
type selectorOwners struct {
	byName map[selectorOwnerName]*object.SelectorOwner
	// services holds each Service under one label that its pods must have, so
	// that those of a pod are found by its labels.
	services map[namespacedLabel][]*object.SelectorOwner
	revision uint64
}

type selectorOwnerName struct {
	kind            object.SelectorOwnerKind
	namespace, name string
}

type namespacedLabel struct{ namespace, key, value string }

// SetSelectorOwner adds the owner or replaces the one of its kind and name, which it
// returns; nil: there was none.
func (t *Table) SetSelectorOwner(f *object.SelectorOwner) (old *object.SelectorOwner) {
	old = t.RemoveSelectorOwner(f.Kind, f.Namespace, f.Name)
	t.selectorOwners.byName[selectorOwnerName{f.Kind, f.Namespace, f.Name}] = f
	t.selectorOwners.revision++
	if at, ok := serviceLabel(f); ok {
		t.selectorOwners.services[at] = append(t.selectorOwners.services[at], f)
	}
	return old
}

// SelectorOwnerRevision changes whenever an owner of a selector does.
func (t *Table) SelectorOwnerRevision() uint64 { return t.selectorOwners.revision }

// RemoveSelectorOwner removes the owner and returns it; nil if there was none.
func (t *Table) RemoveSelectorOwner(kind object.SelectorOwnerKind, namespace, name string) *object.SelectorOwner {
	known := selectorOwnerName{kind, namespace, name}
	f := t.selectorOwners.byName[known]
	if f == nil {
		return nil
	}
	delete(t.selectorOwners.byName, known)
	t.selectorOwners.revision++
	at, ok := serviceLabel(f)
	if !ok {
		return f
	}
	list := slices.DeleteFunc(t.selectorOwners.services[at], func(o *object.SelectorOwner) bool { return o == f })
	if t.selectorOwners.services[at] = list; len(list) == 0 {
		delete(t.selectorOwners.services, at)
	}
	return f
}

// serviceLabel returns the label under which the Service is found; false for other
// owners, and for a Service without a selector, which has no pods.
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

// AllSelectorOwners returns all known owners of selectors, in no order.
func (t *Table) AllSelectorOwners() []*object.SelectorOwner {
	all := make([]*object.SelectorOwner, 0, len(t.selectorOwners.byName))
	for _, owner := range t.selectorOwners.byName { // any order: so it says
		all = append(all, owner)
	}
	return all
}

// SelectorOwners returns the number of selector owners.
func (t *Table) SelectorOwners() int { return len(t.selectorOwners.byName) }

// ControllerOf returns the controller of the pod, nil where it is not known.
func (t *Table) ControllerOf(p *object.Pod) *object.SelectorOwner {
	c := p.Controller
	if c.Kind == object.NoSelectorOwner {
		return nil
	}
	return t.selectorOwners.byName[selectorOwnerName{c.Kind, p.Namespace, c.Name}]
}

// ServicesOf returns the Services that select the pod, in no particular order.
func (t *Table) ServicesOf(p *object.Pod) []*object.SelectorOwner {
	if len(t.selectorOwners.services) == 0 {
		return nil
	}
	var found []*object.SelectorOwner
	for k, v := range p.Labels { // any order: the result has none
		for _, f := range t.selectorOwners.services[namespacedLabel{p.Namespace, k, v}] {
			if hasLabels(p, f.Labels) {
				found = append(found, f)
			}
		}
	}
	return found
}

func hasLabels(p *object.Pod, set map[string]string) bool {
	for k, v := range set { // any order: all must hold
		if got, ok := p.Labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

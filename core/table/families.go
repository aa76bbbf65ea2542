package table

import (
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// families are the Services and controllers whose pods belong together.
type families struct {
	byName map[familyName]*object.Family
	// services holds each Service under one label that its pods must have, so
	// that those of a pod are found by its labels.
	services map[namespacedLabel][]*object.Family
}

type familyName struct {
	kind            object.FamilyKind
	namespace, name string
}

type namespacedLabel struct{ namespace, key, value string }

// SetFamily adds the family or replaces the one of its kind and name, which it
// returns; nil: there was none.
func (t *Table) SetFamily(f *object.Family) (old *object.Family) {
	old = t.RemoveFamily(f.Kind, f.Namespace, f.Name)
	t.families.byName[familyName{f.Kind, f.Namespace, f.Name}] = f
	if at, ok := serviceLabel(f); ok {
		t.families.services[at] = append(t.families.services[at], f)
	}
	return old
}

// RemoveFamily takes the family away and returns it; nil: there was none.
func (t *Table) RemoveFamily(kind object.FamilyKind, namespace, name string) *object.Family {
	known := familyName{kind, namespace, name}
	f := t.families.byName[known]
	if f == nil {
		return nil
	}
	delete(t.families.byName, known)
	at, ok := serviceLabel(f)
	if !ok {
		return f
	}
	list := slices.DeleteFunc(t.families.services[at], func(o *object.Family) bool { return o == f })
	if t.families.services[at] = list; len(list) == 0 {
		delete(t.families.services, at)
	}
	return f
}

// serviceLabel is the label under which the Service is found; false for other
// families, and for a Service without a selector, which has no pods.
func serviceLabel(f *object.Family) (at namespacedLabel, ok bool) {
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

// Families is the number of families.
func (t *Table) Families() int { return len(t.families.byName) }

// ControllerOf returns the controller of the pod, nil where it is not known.
func (t *Table) ControllerOf(p *object.Pod) *object.Family {
	c := p.Controller
	if c.Kind == object.NoFamily {
		return nil
	}
	return t.families.byName[familyName{c.Kind, p.Namespace, c.Name}]
}

// ServicesOf returns the Services that select the pod, in no particular order.
func (t *Table) ServicesOf(p *object.Pod) []*object.Family {
	if len(t.families.services) == 0 {
		return nil
	}
	var found []*object.Family
	for k, v := range p.Labels { // any order: the result has none
		for _, f := range t.families.services[namespacedLabel{p.Namespace, k, v}] {
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

package queue

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// objectName names an object of a resource.
type objectName struct {
	resource        framework.EventResource
	namespace, name string
}

// named finds those of a plugin's members who name an object, where its events say so
// (framework.ClusterEventWithHint.Names): of 10,000 pods that wait for a claim each, an
// event about a claim looks at one.
type named map[objectName]map[*peers]struct{}

func (n named) add(a *peers, names []objectName) {
	for _, name := range names {
		if n[name] == nil {
			n[name] = map[*peers]struct{}{}
		}
		n[name][a] = struct{}{}
	}
}

func (n named) remove(a *peers, names []objectName) {
	for _, name := range names {
		if delete(n[name], a); len(n[name]) == 0 {
			delete(n, name)
		}
	}
}

// namesOf returns the objects that the pod names, as the plugin's events have it.
func (p *plugin) namesOf(pod *object.Pod) (names []objectName) {
	for i := range p.events {
		if w := &p.events[i]; w.Names != nil {
			for _, name := range w.Names(pod) {
				names = append(names, objectName{w.Resource, pod.Namespace, name})
			}
		}
	}
	return names
}

// concerned returns the members that the event may be about, in the order of the list.
func (p *plugin) concerned(e *framework.Event) []member {
	about, ok := objectOf(e)
	if !ok || slices.ContainsFunc(p.events, func(w framework.ClusterEventWithHint) bool { return w.Matches(e) && w.Names == nil }) {
		return p.members
	}
	at := make([]int, 0, len(p.named[about]))
	for a := range p.named[about] { // any order: sorted below
		at = append(at, a.slots[slices.IndexFunc(a.slots, func(s slot) bool { return s.plugin == p })].at)
	}
	slices.Sort(at)
	members := make([]member, len(at))
	for i := range at {
		members[i] = p.members[at[i]]
	}
	return members
}

// objectOf names the object that the event is about, where it is one of a Kind.
func objectOf(e *framework.Event) (objectName, bool) {
	o := cmp.Or(e.NewObject, e.OldObject)
	if o == nil {
		return objectName{}, false
	}
	m := o.Head()
	return objectName{e.Resource, m.Namespace, m.Name}, true
}

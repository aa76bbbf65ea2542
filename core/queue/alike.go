package queue

import (
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// alike are pods that wait for the same plugins, and that no queueing hint, nor
// Options.WouldFailAgain, can tell apart (Options.Alike): they are asked once for all of
// them. Of 10,000 replicas of a workload that fit nowhere an event asks about one.
type alike struct {
	key      string // "": of one pod, which is like no other
	entries  []*Entry
	slots    []slot
	strategy strategy // during a move of all pods: what the plugins said so far
}

// slot is where a plugin's list has pods.
type slot struct {
	plugin *plugin
	at     int
	names  []objectName // by which the plugin finds the pods
}

// first returns the first of the pods that preCheck does not exclude, nil if it excludes all.
func (a *alike) first(preCheck func(*object.Pod) bool) *Entry {
	for _, e := range a.entries {
		if preCheck == nil || preCheck(e.Pod) {
			return e
		}
	}
	return nil
}

// add has the plugins know the pod, with those that are like it if the key says which.
func (x *pluginIndex) add(e *Entry, key []byte, rejectors ...rejector) {
	a := x.alike[string(key)]
	if a == nil {
		a = &alike{key: string(key)}
		for _, r := range rejectors {
			names := r.plugin.namesOf(e.Pod)
			r.plugin.named.add(a, names)
			a.slots = append(a.slots, slot{r.plugin, len(r.plugin.members), names})
			r.plugin.members = append(r.plugin.members, x.member(a, e, r))
		}
		if a.key != "" {
			x.alike[a.key] = a
		}
	}
	e.alike, e.among = a, len(a.entries)
	a.entries = append(a.entries, e)
}

// member returns the pods that are like this one in the list of a plugin that rejected them.
func (x *pluginIndex) member(a *alike, e *Entry, r rejector) member {
	m := member{alike: a, pending: r.pending}
	if e.place == Unschedulable {
		m.size, m.sized = x.sizeOf(r.plugin.name, e)
	}
	return m
}

// keyOf is equal for pods that are alike, and empty for one that is like no other. It is
// good until the next call.
func (q *Queue) keyOf(e *Entry) []byte {
	key := q.opts.Alike(q.keyBuf[:0], e)
	if len(key) > 0 {
		for _, r := range e.rejectors {
			key = append(append(key, 0), r.plugin.name...)
			if r.pending {
				key = append(key, 1)
			}
		}
	}
	q.keyBuf = key
	return key
}

// remove has no plugin know the pod.
func (x *pluginIndex) remove(e *Entry) {
	a := e.alike
	if a == nil {
		return
	}
	last := len(a.entries) - 1
	a.entries[e.among], a.entries[last].among = a.entries[last], e.among
	a.entries = slices.Delete(a.entries, last, last+1)
	if e.alike = nil; len(a.entries) > 0 {
		return
	}
	delete(x.alike, a.key)
	for _, s := range a.slots {
		s.plugin.remove(a, s)
	}
}

// remove takes the pods from the slot of the plugin's list.
func (p *plugin) remove(a *alike, s slot) {
	p.named.remove(a, s.names)
	last := len(p.members) - 1
	moved := p.members[last]
	p.members[s.at] = moved
	p.members[last] = member{}
	p.members = p.members[:last]
	for i := range moved.slots {
		if moved.slots[i].plugin == p {
			moved.slots[i].at = s.at
		}
	}
}

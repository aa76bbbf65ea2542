package queue

import (
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// peers are unschedulable pods that wait for the same plugins, and that neither a
// queueing hint nor Question.CouldHelp can tell apart (Class.Key). Both are called once for all of them: of 10,000 replicas that fit nowhere, an event costs one
// question.
type peers struct {
	key      string // "" for a single pod without peers
	entries  []*Entry
	slots    []slot
	strategy strategy // during a move of all pods: the strongest answer so far
}

// slot is the place of the peers in the list of one plugin.
type slot struct {
	plugin *plugin
	at     int
	names  []objectName // by which the plugin finds the pods
}

// first returns the first of the pods that preCheck does not exclude, nil if it excludes all.
func (a *peers) first(preCheck func(*object.Pod) bool) *Entry {
	for _, e := range a.entries {
		if preCheck == nil || preCheck(e.Pod) {
			return e
		}
	}
	return nil
}

// add adds the pod to the lists of the plugins that rejected it, or to its peers that are
// listed already.
func (x *pluginIndex) add(e *Entry, c Class, rejectors ...rejector) {
	a := x.byKey[string(c.Key)]
	if a == nil {
		a = &peers{key: string(c.Key)}
		for _, r := range rejectors {
			names := r.plugin.namesOf(e.Pod)
			r.plugin.named.add(a, names)
			a.slots = append(a.slots, slot{r.plugin, len(r.plugin.members), names})
			r.plugin.members = append(r.plugin.members, member{peers: a, pending: r.pending, sized: r.plugin.name == c.SizedBy, size: c.Size})
		}
		if a.key != "" {
			x.byKey[a.key] = a
		}
	}
	e.peers, e.peerIndex = a, len(a.entries)
	a.entries = append(a.entries, e)
}

// classOf returns the class of an unschedulable pod. Its key, which names the plugins that
// rejected the pod, is valid until the next call.
func (q *Queue) classOf(e *Entry) Class {
	c := q.opts.Foresight.Class(q.keyBuf[:0], e)
	if len(c.Key) > 0 {
		for _, r := range e.rejectors {
			c.Key = append(append(c.Key, 0), r.plugin.name...)
			if r.pending {
				c.Key = append(c.Key, 1)
			}
		}
	}
	q.keyBuf = c.Key
	return c
}

// remove removes the pod from its peers, and the peers from the plugins' lists if it was
// the last.
func (x *pluginIndex) remove(e *Entry) {
	a := e.peers
	if a == nil {
		return
	}
	last := len(a.entries) - 1
	a.entries[e.peerIndex], a.entries[last].peerIndex = a.entries[last], e.peerIndex
	a.entries = slices.Delete(a.entries, last, last+1)
	if e.peers = nil; len(a.entries) > 0 {
		return
	}
	delete(x.byKey, a.key)
	for _, s := range a.slots {
		s.plugin.remove(a, s)
	}
}

// remove removes the peers from the plugin's list, at the slot.
func (p *plugin) remove(a *peers, s slot) {
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

package queue

import (
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// peers are unschedulable pods that wait for the same plugins, and that neither a
// queueing hint nor Foresight.CouldHelp can tell apart (Foresight.AppendClass). Both are
// called once for all of them: of 10,000 replicas that fit nowhere, an event costs one
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
// listed already. An empty key means that it has no peers.
func (x *pluginIndex) add(e *Entry, key []byte, rejectors ...rejector) {
	a := x.byKey[string(key)]
	if a == nil {
		a = &peers{key: string(key)}
		for _, r := range rejectors {
			names := r.plugin.namesOf(e.Pod)
			r.plugin.named.add(a, names)
			a.slots = append(a.slots, slot{r.plugin, len(r.plugin.members), names})
			r.plugin.members = append(r.plugin.members, member{peers: a, pending: r.pending})
		}
		if a.key != "" {
			x.byKey[a.key] = a
		}
		if e.place == Unschedulable {
			x.measure(a, e)
		}
	}
	e.peers, e.peerIndex = a, len(a.entries)
	a.entries = append(a.entries, e)
}

// measure sets the size of the peers in the list of the plugin that it is about, if it is
// known.
func (x *pluginIndex) measure(a *peers, e *Entry) {
	plugin, size := x.foresight.Size(e)
	if plugin == "" {
		return
	}
	for _, s := range a.slots {
		if s.plugin.name == plugin {
			m := &s.plugin.members[s.at]
			m.size, m.sized = size, true
		}
	}
}

// keyOf returns a key that is equal for peers, empty for a pod that has none. It is valid
// until the next call.
func (q *Queue) keyOf(e *Entry) []byte {
	key := q.opts.Foresight.AppendClass(q.keyBuf[:0], e)
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

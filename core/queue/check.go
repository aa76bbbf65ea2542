package queue

import (
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// Check returns an error for the first broken invariant, nil if all hold: each pod is in
// exactly one place, the heaps are in order, pods in flight are counted, plugins list
// exactly the pods that wait for them, and nominations are of pods that the queue has. Its
// cost is proportional to the number of pods. It is for tests and audits.
func (q *Queue) Check() error {
	for _, check := range []func() error{q.checkPlaces, q.checkHeaps, q.checkPlugins, q.checkNominations, q.checkGroups} {
		if err := check(); err != nil {
			return fmt.Errorf("queue: %w", err)
		}
	}
	return nil
}

// checkPlaces returns an error if a pod is not in the heap or set of its place, if a pod is gated
// without a PreEnqueue status or the reverse, if events are kept while no pod is in flight, or if a
// move was illegal.
func (q *Queue) checkPlaces() error {
	for at := range q.heaps {
		for e := range q.heaps[at].all() {
			if e.place != Place(at) || !q.heaps[at].has(e) {
				return fmt.Errorf("pod %s is among the pods that are %s, at %d; it says that it is %s", e.Pod.UID, Place(at), e.index, e.place)
			}
			if (e.place == Gated) != (e.preEnqueueStatus != nil) {
				return fmt.Errorf("pod %s is %s, its PreEnqueue status is %v", e.Pod.UID, e.place, e.preEnqueueStatus)
			}
		}
	}
	for at, e := range q.inFlight {
		if e.place != InFlight || e.index != at {
			return fmt.Errorf("pod %s is number %d of the pods in flight; it says that it is %s, number %d", e.Pod.UID, at, e.place, e.index)
		}
	}
	if q.inFlight.len() == 0 && slices.ContainsFunc(q.events.last[:], func(e *framework.Event) bool { return e != nil }) {
		return fmt.Errorf("nothing is in flight, but events are kept")
	}
	return q.illegal
}

// checkHeaps returns an error if a heap is out of order.
func (q *Queue) checkHeaps() error {
	for place, h := range q.heaps {
		for i := 1; i < len(h.entries); i++ {
			if h.less(h.entries[i], h.entries[(i-1)/2]) {
				return fmt.Errorf("%s: pod %s is out of order", Place(place), h.entries[i].Pod.UID)
			}
		}
		var last *Entry
		for _, e := range h.run[h.front:] {
			if e != nil && last != nil && h.less(e, last) {
				return fmt.Errorf("%s: pod %s is behind a pod that it precedes", Place(place), e.Pod.UID)
			}
			if e != nil {
				last = e
			}
		}
	}
	return nil
}

// checkPlugins returns an error if the plugins' lists do not hold exactly the pods that
// wait for them: by plugin, class, size and named objects.
func (q *Queue) checkPlugins() error {
	members, slots, named := 0, 0, 0
	for _, p := range q.plugins.plugins {
		members += len(p.members)
		for _, entries := range p.named { // any order: a sum
			named += len(entries)
		}
	}
	for e := range q.Entries() {
		uid, a := e.Pod.UID, e.peers
		if a == nil {
			a = &peers{}
		}
		if err := q.checkPeers(e); err != nil {
			return err
		}
		if e.peerIndex == 0 {
			slots += len(a.slots)
		}
		for _, s := range a.slots {
			if s.at >= len(s.plugin.members) || s.plugin.members[s.at].peers != a {
				return fmt.Errorf("pod %s is not with plugin %s", uid, s.plugin.name)
			}
			if m := s.plugin.members[s.at]; e.place == Unschedulable {
				c := q.classOf(e)
				if known := c.SizedBy == s.plugin.name; known != m.sized || known && c.Size != m.size {
					return fmt.Errorf("pod %s is of size %+v (known %t) to plugin %s, should be %+v to %q", uid, m.size, m.sized, s.plugin.name, c.Size, c.SizedBy)
				}
			}
			names := s.plugin.namesOf(e.Pod)
			for i, name := range names {
				if _, found := s.plugin.named[name][a]; !found {
					return fmt.Errorf("plugin %s does not find pod %s by %v", s.plugin.name, uid, name)
				}
				if e.peerIndex == 0 && !slices.Contains(names[:i], name) {
					named--
				}
			}
		}
		want := 0
		switch {
		case e.place == Unschedulable:
			want = len(e.rejectors)
		case e.place == Gated && (e.group == nil || e.group.gate == e) && q.plugins.find(e.Pod.SchedulerName, e.preEnqueueStatus.Plugin) != nil:
			want = 1
		}
		if len(a.slots) != want || e.place == Unschedulable && want == 0 && e.group == nil {
			return fmt.Errorf("pod %s is %s and waits for %d plugins, should be %d", uid, e.place, len(a.slots), want)
		}
	}
	if members != slots {
		return fmt.Errorf("plugins hold %d pods, pods wait for %d plugins", members, slots)
	}
	if named != 0 {
		return fmt.Errorf("plugins find %d pods more by what they name than name it", named)
	}
	return nil
}

// checkPeers returns an error if the pod is not listed with its peers (equal pods that wait
// for the same plugins), or waits for other plugins than they do.
func (q *Queue) checkPeers(e *Entry) error {
	a := e.peers
	switch {
	case a == nil:
		return nil
	case e.peerIndex >= len(a.entries) || a.entries[e.peerIndex] != e:
		return fmt.Errorf("pod %s is not among the pods that are like it", e.Pod.UID)
	case !q.plugins.lists(a):
		return fmt.Errorf("pod %s is not found by its namespace", e.Pod.UID)
	case a.key == "" && len(a.entries) > 1 || a.key != "" && q.plugins.byKey[a.key] != a:
		return fmt.Errorf("the pods that are like pod %s are not found", e.Pod.UID)
	case e.place == Unschedulable:
		if key := q.classOf(e).Key; string(key) != a.key {
			return fmt.Errorf("pod %s is among pods that it is not like: %q, %q", e.Pod.UID, a.key, key)
		}
		if !slices.EqualFunc(a.slots, e.rejectors, func(s slot, r rejector) bool { return s.waits(r) }) {
			return fmt.Errorf("pod %s waits for other plugins than those that rejected it", e.Pod.UID)
		}
	}
	return nil
}

// waits reports whether the slot lists pods that the plugin of r rejected, and with Pending exactly
// if r.pending is set.
func (s *slot) waits(r rejector) bool {
	return s.plugin == r.plugin && s.at < len(s.plugin.members) && s.plugin.members[s.at].pending == r.pending
}

// checkNominations returns an error if nominations by pod and by node do not agree.
func (q *Queue) checkNominations() error {
	pods, nominated := 0, 0
	for node, list := range q.nominated { // any order: an error is an error
		if node == "" || len(list) == 0 || !slices.IsSortedFunc(list, byRank) {
			return fmt.Errorf("nominations to node %q: empty or not sorted", node)
		}
		pods += len(list)
	}
	for e := range q.Entries() {
		if e.nominated == "" {
			continue
		}
		nominated++
		if !slices.ContainsFunc(q.nominated[e.nominated], func(p *object.Pod) bool { return p == e.Pod }) {
			return fmt.Errorf("pod %s is not among the pods nominated to node %s", e.Pod.UID, e.nominated)
		}
	}
	if len(q.nodes) != len(q.nominated) || !slices.IsSorted(q.nodes) {
		return fmt.Errorf("nominations are to %d nodes, the list has %d or is not sorted", len(q.nominated), len(q.nodes))
	}
	if pods != nominated {
		return fmt.Errorf("%d nominations, but %d pods are nominated", pods, nominated)
	}
	return nil
}

package queue

import (
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// Check returns the first broken invariant that it finds, nil when all hold:
// each pod is in exactly one place, the heaps are in order, the pods in flight
// are counted, the index has just the pods that wait, and nominations are of
// pods that the queue has. It costs time in proportion to the pods.
func (q *Queue) Check() error {
	for _, check := range []func() error{q.checkPlaces, q.checkHeaps, q.checkIndex, q.checkNominations} {
		if err := check(); err != nil {
			return fmt.Errorf("queue: %w", err)
		}
	}
	return nil
}

// checkPlaces: each pod is in the heap of its place and in no other.
func (q *Queue) checkPlaces() error {
	inHeaps, inFlight := 0, 0
	for _, h := range q.heaps {
		inHeaps += h.len()
	}
	for uid, e := range q.pods { // any order: an error is an error
		switch {
		case uid != e.Pod.UID:
			return fmt.Errorf("pod %s is kept under the UID %s", e.Pod.UID, uid)
		case e.place == InFlight:
			inFlight++
		case !q.heaps[e.place].has(e):
			return fmt.Errorf("pod %s is not where it should be: %s", uid, e.place)
		}
		if (e.place == Gated) != (e.gate != nil) {
			return fmt.Errorf("pod %s is %s, its gate is %v", uid, e.place, e.gate)
		}
	}
	if inFlight != q.inFlight || inHeaps+inFlight != len(q.pods) {
		return fmt.Errorf("%d pods: %d in places, %d in flight, of which %d are counted", len(q.pods), inHeaps, inFlight, q.inFlight)
	}
	if q.inFlight == 0 && slices.ContainsFunc(q.log.last[:], func(e *framework.Event) bool { return e != nil }) {
		return fmt.Errorf("nothing is in flight, but events are kept")
	}
	return nil
}

// checkHeaps: no pod comes after one that it should come before.
func (q *Queue) checkHeaps() error {
	for place, h := range q.heaps {
		for i := 1; i < len(h.entries); i++ {
			if h.less(h.entries[i], h.entries[(i-1)/2]) {
				return fmt.Errorf("%s: pod %s is out of order", Place(place), h.entries[i].Pod.UID)
			}
		}
		var last *entry
		for _, e := range h.run[h.front:] {
			if e != nil && last != nil && h.less(e, last) {
				return fmt.Errorf("%s: pod %s comes too late", Place(place), e.Pod.UID)
			}
			if e != nil {
				last = e
			}
		}
	}
	return nil
}

// checkIndex: each pod that waits is with the plugins that it waits for.
func (q *Queue) checkIndex() error {
	members, slots := 0, 0
	for _, g := range q.index.groups {
		members += len(g.members)
	}
	for uid, e := range q.pods { // any order: an error is an error
		slots += len(e.slots)
		for _, s := range e.slots {
			if s.at >= len(s.group.members) || s.group.members[s.at].entry != e {
				return fmt.Errorf("pod %s is not with plugin %s", uid, s.group.plugin)
			}
		}
		want := 0
		switch {
		case e.place == Unschedulable:
			want = len(e.rejectors)
		case e.place == Gated && q.index.group(e.Pod.SchedulerName, e.gate.Plugin) != nil:
			want = 1
		}
		if len(e.slots) != want || e.place == Unschedulable && want == 0 {
			return fmt.Errorf("pod %s is %s and waits for %d plugins, should be %d", uid, e.place, len(e.slots), want)
		}
	}
	if members != slots {
		return fmt.Errorf("plugins hold %d pods, pods wait for %d plugins", members, slots)
	}
	return nil
}

// checkNominations: both ways agree, on the newest state of pods that are here.
func (q *Queue) checkNominations() error {
	pods, nominated := 0, 0
	for node, list := range q.nominated { // any order: an error is an error
		if node == "" || len(list) == 0 || !slices.IsSortedFunc(list, byRank) {
			return fmt.Errorf("nominations to node %q: empty or not sorted", node)
		}
		pods += len(list)
	}
	for uid, e := range q.pods { // any order: an error is an error
		if e.nominated == "" {
			continue
		}
		nominated++
		if !slices.ContainsFunc(q.nominated[e.nominated], func(p *object.Pod) bool { return p == e.Pod }) {
			return fmt.Errorf("pod %s is not among the pods nominated to node %s", uid, e.nominated)
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

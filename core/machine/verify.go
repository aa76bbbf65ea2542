package machine

import (
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/queue"
)

// Verify checks the invariants that hold between any two steps and returns an error for
// the first that does not.
func (m *Machine) Verify() error {
	for _, check := range []func() error{m.queue.Check, m.table.Check, m.engine.Check, m.pods.verify, m.extenders.verify, m.groups.verify, m.conditions.verify} {
		if err := check(); err != nil {
			return err
		}
	}
	assumed, queued, waiting, evictions := 0, 0, 0, 0
	for _, ps := range m.pods.byUID { // any order: an error is an error
		if err := m.verifyPod(ps); err != nil {
			return fmt.Errorf("pod %s: %w", ps.pod.Key(), err)
		}
		if ps.assumed {
			assumed++
		}
		if ps.entry != nil {
			queued++
		}
		if ps.eviction != nil && !ps.eviction.replied {
			evictions++
		}
		if c := ps.binding; c != nil && c.phase.waits() {
			if waiting++; !slices.Contains(m.bindings.waiting, c) {
				return fmt.Errorf("pod %s: its binding cycle is in phase %q and not among those that wait", ps.pod.Key(), c.phase)
			}
		}
	}
	for range m.queue.Entries() {
		queued--
	}
	if assumed != m.pods.assumedCount || queued != 0 || waiting != len(m.bindings.waiting) {
		return fmt.Errorf("%d pods are assumed, counted are %d; %d of the waiting binding cycles are unknown, %d of the pods in the queue",
			assumed, m.pods.assumedCount, len(m.bindings.waiting)-waiting, -queued)
	}
	if evictions != m.evictions.open {
		return fmt.Errorf("%d evictions have no answer, counted are %d", evictions, m.evictions.open)
	}
	return m.bindings.illegal
}

// verifyPod returns an error if the pod's records disagree on where it is or how far
// its cycle is.
func (m *Machine) verifyPod(ps *podState) error {
	at, pl := ps.entry.Place(), m.table.Pod(ps.pod.UID)
	switch {
	case ps.assumed && pl == nil:
		return fmt.Errorf("it is assumed but not placed")
	case ps.goneByRead != nil && (at != queue.Nowhere || pl != nil):
		return fmt.Errorf("a read showed it gone but it is %s in the queue, placed %t", at, pl != nil)
	case ps.unconfirmed != nil && pl == nil:
		return fmt.Errorf("its binding is unconfirmed but it is not placed")
	case at != queue.InFlight && at != queue.Nowhere && pl != nil:
		return fmt.Errorf("it is %s and placed on %s at once", at, m.table.Name(pl.Row))
	case (at == queue.InFlight) != (ps.binding != nil || ps.extender != nil):
		return fmt.Errorf("it is %s in the queue; in a binding cycle %t, in an extender cycle %t", at, ps.binding != nil, ps.extender != nil)
	case ps.binding != nil && ps.extender != nil:
		return fmt.Errorf("it is in a binding cycle and in an extender cycle")
	case ps.binding != nil && ps.ended != nil:
		return fmt.Errorf("it is in a binding cycle, and the one before awaits a reply")
	case ps.binding != nil && (ps.binding.phase >= endedAwaitsWrites || ps.binding.state != ps):
		return fmt.Errorf("its binding cycle is in phase %q, or another pod's", ps.binding.phase)
	case ps.binding != nil && (pl == nil || m.table.Name(pl.Row) != ps.binding.node):
		return fmt.Errorf("it is assumed on %s but not placed there", ps.binding.node)
	case ps.ended != nil && (ps.ended.phase < endedAwaitsWrites || ps.ended.phase == ended):
		return fmt.Errorf("a cycle that ended is in phase %q", ps.ended.phase)
	}
	return nil
}

// verify returns an error if a pod that is not deleted is not found by UID and by name, or if a
// deleted one is kept though no reply about it is outstanding.
func (x *pods) verify() error {
	for name, ps := range x.byName { // any order: an error is an error
		if x.byUID[ps.pod.UID] != ps || ps.pod.NamespacedName() != name || ps.entry == nil && !x.placed(ps) && !ps.pod.Terminating && ps.goneByRead == nil {
			return fmt.Errorf("pod %s is known by name; by UID %t, in the queue %t, placed %t",
				name, x.byUID[ps.pod.UID] == ps, ps.entry != nil, x.placed(ps))
		}
		if ps.entry != nil && ps.entry.Owner != ps {
			return fmt.Errorf("pod %s has an entry in the queue that is another's", name)
		}
	}
	for uid, ps := range x.byUID { // any order: an error is an error
		if x.byName[ps.pod.NamespacedName()] == ps {
			continue
		}
		if uid != ps.pod.UID || ps.entry != nil || x.placed(ps) || ps.ended == nil && ps.eviction == nil {
			return fmt.Errorf("pod %s is gone but still has a record", ps.pod.Key())
		}
	}
	return nil
}

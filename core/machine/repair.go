package machine

import (
	"errors"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/queue"
)

// errInterrupted is why an attempt fails that was in the middle of a step that panicked.
var errInterrupted = errors.New("the attempt was interrupted by a panic in the scheduler")

// Repair restores a consistent state after a step that panicked. It returns the effects
// of that step before the panic, and those of the repair. The caller of Step then passes
// the event again.
//
// The table counts everything again, without open trials, and the queue sorts its pods
// again. An attempt that was in the middle of a step fails, and its pod backs off. All
// pods are tried again, as the event, passed again, may look like no change.
func (m *Machine) Repair() []Effect {
	m.groups.rejoin()
	m.table.Rebuild()
	if c := m.groups.underway; c != nil {
		m.groups.undoGroup(c)
		m.groups.underway = nil
	}
	m.queue.SortAnew()
	m.engine.Reset()
	m.bindings.illegal = nil
	states := m.pods.sorted()
	for _, ps := range states {
		m.bindings.repair(ps)
	}
	m.extenders.repair(states)
	m.bindings.waiting = nil
	m.conditions.clear()
	for _, ps := range states {
		m.repairPod(ps)
	}
	m.queue.EndGroups(m.now)
	m.moveAll(anythingChanged())
	m.quotas.settle()
	m.groups.statuses.settle()
	return m.end()
}

// repair ends the pod's binding cycle if the pod is not in flight or not on the cycle's node, and
// fails the cycle if it was in the middle of a step. It forgets an entry that the queue does not
// hold.
func (b *bindingCycles) repair(ps *podState) {
	if ps.entry.Place() == queue.Nowhere {
		ps.entry = nil
	}
	c := ps.binding
	if c == nil {
		return
	}
	switch pl := b.table.Pod(ps.pod.UID); {
	case ps.entry.Place() != queue.InFlight || pl == nil || b.table.Name(pl.Row) != c.node:
		b.forgetAssumed(c)
		b.finish(c)
	case c.phase == reserve || c.phase == preBind:
		b.fail(c.attempt, &decision.Status{Code: decision.Error, Err: errInterrupted})
	}
}

// repairPod makes the pod's records agree on where it is: in the queue, in a cycle, or on a
// node.
func (m *Machine) repairPod(ps *podState) {
	ps.stated = nil // all are tried again
	pl := m.table.Pod(ps.pod.UID)
	bound := pl != nil && pl.Pod.NodeName != ""
	idle := ps.binding == nil && ps.extender == nil
	switch at := ps.entry.Place(); {
	case at == queue.Nowhere:
	case bound && (idle || at != queue.InFlight):
		m.attempts.dequeue(ps)
	case at == queue.InFlight && idle:
		m.table.RemovePod(ps.pod.UID)
		m.queue.Requeue(m.now, ps.entry, nil, nil)
	case at != queue.InFlight:
		m.table.RemovePod(ps.pod.UID)
	}
	if !m.pods.placed(ps) {
		m.pods.setAssumed(ps, false)
		ps.unconfirmed = nil
	}
	if c := ps.binding; c != nil && c.phase.waits() {
		m.bindings.waiting.add(c)
	}
	switch name := ps.pod.NamespacedName(); {
	case ps.entry != nil || m.pods.placed(ps):
		if m.pods.byName[name] == nil {
			m.pods.byName[name] = ps // it was not gone yet
		}
	case m.pods.byName[name] == ps && !ps.pod.Terminating && ps.goneByRead == nil:
		delete(m.pods.byName, name) // it is new, or as good as gone
	}
	m.pods.forget(ps)
}

package machine

import (
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/queue"
)

var errInterrupted = errors.New("the attempt was interrupted by a panic in the scheduler")

// Repair puts right what a step that panicked may have left, and returns what
// is to be done: what the step had asked for before it panicked, and what
// follows from the repair. Whoever called Step gives the event again.
//
// Tries are taken back. An attempt that was in the middle of a step fails, and
// its pod backs off. Whom the event may have helped is tried again, as the
// event given again may look like no change.
func (m *Machine) Repair() []Effect {
	m.table.Rollback()
	m.engine.Reset()
	m.repairFlights()
	m.repairInquiries()
	for _, s := range m.queue.Dump() {
		uid := s.Pod.UID
		pl := m.table.Pod(uid)
		switch {
		case s.Place == queue.InFlight && m.flights[uid] == nil && m.inquiries[uid] == nil:
			if pl != nil && pl.Pod.NodeName != "" {
				m.queue.Delete(uid)
				continue
			}
			m.table.Remove(uid)
			m.queue.Park(m.now, uid, queue.Outcome{})
		case s.Place != queue.InFlight && pl != nil && pl.Pod.NodeName != "":
			m.queue.Delete(uid)
		case s.Place != queue.InFlight && pl != nil:
			m.table.Remove(uid)
		}
	}
	m.repairNotes()
	m.move(&framework.Event{Resource: framework.WildCard, ActionType: framework.All})
	effects := m.effects
	m.effects = nil
	return effects
}

// repairFlights ends flights that are not in flight in the queue or take no
// room, and those that are between two phases.
func (m *Machine) repairFlights() {
	for _, uid := range sortedUIDs(m.flights) {
		f := m.flights[uid]
		switch pl := m.table.Pod(uid); {
		case f == nil: // ended by another's end
		case m.queue.Where(uid) != queue.InFlight || pl == nil || m.table.Name(pl.Row) != f.node:
			m.unreserve(f)
			m.land(f)
		case f.phase == permitting:
			m.fail(f.attempt, &decision.Status{Code: decision.Error, Err: errInterrupted}, f)
		}
	}
	for _, uid := range sortedUIDs(m.awaiting) {
		if f := m.awaiting[uid]; m.flights[uid] != f || f.phase != awaiting {
			delete(m.awaiting, uid)
		}
	}
}

// repairInquiries ends those that wait for no answer and do not stand in line,
// and counts the others.
func (m *Machine) repairInquiries() {
	lined := map[types.UID]bool{}
	kept := m.line[:0]
	for _, q := range m.line {
		if m.inquiries[q.pod.UID] == q && len(q.open) == 0 && m.queue.Where(q.pod.UID) == queue.InFlight {
			kept = append(kept, q)
			lined[q.pod.UID] = true
		}
	}
	clear(m.line[len(kept):])
	m.line = kept
	clear(m.busy)
	for uid, q := range m.inquiries { // any order: each by itself
		if len(q.open) == 0 && !lined[uid] || m.queue.Where(uid) != queue.InFlight {
			delete(m.inquiries, uid)
			continue
		}
		for _, asked := range q.open { // any order: counts
			m.busy[asked.extender]++
		}
	}
	m.roomy = true // the next step lets those in line start that may
}

// repairNotes forgets what is noted of pods that are not placed.
func (m *Machine) repairNotes() {
	for uid := range m.assumed { // any order: each by itself
		if m.table.Pod(uid) == nil {
			delete(m.assumed, uid)
		}
	}
	for uid := range m.doubts { // any order: each by itself
		if m.table.Pod(uid) == nil {
			delete(m.doubts, uid)
		}
	}
}

package machine

import (
	"errors"
	"fmt"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/queue"
)

// Verify checks what must hold between any two steps, and names the first
// breach.
func (m *Machine) Verify() error {
	if err := m.queue.Check(); err != nil {
		return err
	}
	if err := m.table.Check(); err != nil {
		return err
	}
	if err := m.engine.Check(); err != nil {
		return err
	}
	for _, uid := range m.sortedFlights() {
		f := m.flights[uid]
		if at := m.queue.Where(uid); at != queue.InFlight {
			return fmt.Errorf("pod %s is assumed on %s and %s in the queue; it should be in flight", f.pod.Key(), f.node, at)
		}
		pl := m.table.Pod(uid)
		if pl == nil || m.table.Name(pl.Row) != f.node {
			return fmt.Errorf("pod %s is assumed on %s but takes no room there", f.pod.Key(), f.node)
		}
	}
	for uid := range m.assumed { // any order: an error is an error
		if m.table.Pod(uid) == nil {
			return fmt.Errorf("pod %s is assumed but not placed", uid)
		}
	}
	for _, s := range m.queue.Dump() {
		_, flying := m.flights[s.Pod.UID]
		switch pl := m.table.Pod(s.Pod.UID); {
		case s.Place == queue.InFlight && !flying:
			return fmt.Errorf("pod %s is in flight but nobody carries it", s.Pod.Key())
		case s.Place != queue.InFlight && pl != nil:
			return fmt.Errorf("pod %s is %s and placed on %s at once", s.Pod.Key(), s.Place, m.table.Name(pl.Row))
		}
	}
	return nil
}

// Repair puts right what a step that panicked may have left, and returns what
// is to be done for it. Tries are taken back, pods handed out by the queue
// that nobody carries are tried again after a backoff, and bindings whose
// effects may have been lost are settled by what the API says.
func (m *Machine) Repair() []Effect {
	m.effects = nil
	m.table.Rollback()
	m.engine.Reset()
	for _, s := range m.queue.Dump() {
		if s.Place == queue.InFlight && m.flights[s.Pod.UID] == nil {
			if m.assumed[s.Pod.UID] != "" {
				delete(m.assumed, s.Pod.UID)
				m.table.Remove(s.Pod.UID)
			}
			m.queue.Park(m.now, s.Pod.UID, queue.Outcome{})
		}
	}
	for _, uid := range m.sortedFlights() {
		switch f := m.flights[uid]; f.phase {
		case binding, settling:
			f.phase = settling
			m.settle(f)
		case permitting, writing:
			m.fail(f.attempt, &decision.Status{Code: decision.Error, Err: errInterrupted}, f)
		}
	}
	return m.effects
}

var errInterrupted = errors.New("the attempt was interrupted by a panic in the scheduler")

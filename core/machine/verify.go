package machine

import (
	"fmt"

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

package machine

import (
	"fmt"
	"slices"

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
	for _, uid := range sortedUIDs(m.flights) {
		f := m.flights[uid]
		if at := m.queue.Where(uid); at != queue.InFlight {
			return fmt.Errorf("pod %s is assumed on %s and %s in the queue; it should be in flight", f.pod.Key(), f.node, at)
		}
		pl := m.table.Pod(uid)
		if pl == nil || m.table.Name(pl.Row) != f.node {
			return fmt.Errorf("pod %s is assumed on %s but takes no room there", f.pod.Key(), f.node)
		}
	}
	for uid, f := range m.awaiting { // any order: an error is an error
		if m.flights[uid] != f || f.phase != awaiting {
			return fmt.Errorf("pod %s is remembered to wait for its writes, and does not", f.pod.Key())
		}
	}
	for uid := range m.assumed { // any order: an error is an error
		if m.table.Pod(uid) == nil {
			return fmt.Errorf("pod %s is assumed but not placed", uid)
		}
	}
	for uid := range m.doubts { // any order: an error is an error
		if m.table.Pod(uid) == nil {
			return fmt.Errorf("pod %s is doubted but not placed", uid)
		}
	}
	if err := m.verifyInquiries(); err != nil {
		return err
	}
	for _, s := range m.queue.Dump() {
		_, flying := m.flights[s.Pod.UID]
		_, asking := m.inquiries[s.Pod.UID]
		switch pl := m.table.Pod(s.Pod.UID); {
		case s.Place == queue.InFlight && flying == asking:
			return fmt.Errorf("pod %s is in flight; it should be either assumed or asked about (assumed %t, asked about %t)", s.Pod.Key(), flying, asking)
		case s.Place != queue.InFlight && pl != nil:
			return fmt.Errorf("pod %s is %s and placed on %s at once", s.Pod.Key(), s.Place, m.table.Name(pl.Row))
		}
	}
	return nil
}

// verifyInquiries checks that pods that wait for extenders are in flight, wait
// for an answer or stand in line, and are counted right.
func (m *Machine) verifyInquiries() error {
	busy := make([]int, len(m.busy))
	for uid, q := range m.inquiries { // any order: an error is an error
		lined := slices.Contains(m.line, q)
		switch at := m.queue.Where(uid); {
		case at != queue.InFlight:
			return fmt.Errorf("extenders are asked about pod %s, which is %s; it should be in flight", q.pod.Key(), at)
		case lined == (len(q.open) > 0):
			return fmt.Errorf("pod %s waits for %d answers of extenders, in line %t; it should be either", q.pod.Key(), len(q.open), lined)
		}
		for _, asked := range q.open { // any order: counts
			busy[asked.extender]++
		}
	}
	if !slices.Equal(busy, m.busy) {
		return fmt.Errorf("extenders have %v questions to answer, counted are %v", busy, m.busy)
	}
	if stranded := slices.IndexFunc(m.line, m.admits); stranded >= 0 {
		return fmt.Errorf("pod %s stands in line for extenders that have room", m.line[stranded].pod.Key())
	}
	return nil
}

package machine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
)

// written takes in what became of a flight's writes. Until then nothing that
// was reserved is given to others, as it may be the pod's already.
func (m *Machine) written(e Written) {
	for _, o := range e.Shown {
		m.objectReplied(o)
	}
	if f := m.ended[e.UID]; f != nil && f.phase == writing {
		delete(m.ended, e.UID)
		m.giveBack(f)
		return
	}
	f := m.flights[e.UID]
	switch {
	case f == nil:
		return
	case f.phase == writing:
		f.phase = permitting
	case f.phase != retracting:
		return
	}
	if pl := m.table.Pod(e.UID); pl.Pod.NodeName == f.node { // another bound it meanwhile
		if e.Err != nil {
			m.giveBack(f)
		}
		m.settled(f)
		return
	}
	if f.failed != nil {
		m.fail(f.attempt, f.failed, f)
		return
	}
	if e.Err != nil {
		plugin := f.writers[min(e.Done, len(f.writers)-1)]
		m.fail(f.attempt, attribute(&decision.Status{Code: decision.Error, Err: e.Err}, "PreBind", plugin), f)
		return
	}
	m.prepared(f)
}

// retract has taken back what was written for the pod, and tells whether there
// is, or may be, any such thing. The flight then ends when that is done.
func (m *Machine) retract(f *flight, why *decision.Status) bool {
	switch f.phase {
	case retracting:
		return false
	case writing: // not before it is known what there is to take back
		f.failed = why
		return true
	}
	var writes []framework.Write
	for _, pl := range slices.Backward(f.profile.Reserve) {
		if pl.RevertWrites != nil {
			_ = m.guard("Unreserve", pl.Name, func() { writes = append(writes, pl.RevertWrites(m.table, f.pod, f.node)...) })
		}
	}
	if len(writes) == 0 {
		return false
	}
	delete(m.awaiting, f.pod.UID)
	f.phase, f.failed = retracting, why
	m.do(Write{Pod: f.pod, Writes: writes})
	return true
}

package machine

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/table"
)

// Ready reports whether a ScheduleOne event would start an attempt now.
func (m *Machine) Ready() bool { return !m.evictions.awaited() && m.queue.Ready() }

// First returns the pod that a ScheduleOne would take now, nil when there is none.
func (m *Machine) First() *object.Pod {
	if m.evictions.awaited() {
		return nil
	}
	return m.queue.First()
}

// Queue returns the machine's queue, for inspection only.
func (m *Machine) Queue() *queue.Queue { return m.queue }

// Listen adds a listener to the queue. It may not call the machine.
func (m *Machine) Listen(l *queue.Listener) { m.queue.Listen(l) }

// Table returns the machine's table, for inspection only.
func (m *Machine) Table() *table.Table { return m.table }

// Entry returns the pod in the queue, for inspection only; nil when it is not there.
func (m *Machine) Entry(uid types.UID) *queue.Entry {
	if ps := m.pods.byUID[uid]; ps != nil {
		return ps.entry
	}
	return nil
}

// Nominator returns the nominations of the pods in the queue.
func (m *Machine) Nominator() engine.Nominator { return m.nominations }

// Pods lists the pods that wait or are placed, in no order.
func (m *Machine) Pods() []*object.Pod {
	pods := make([]*object.Pod, 0, len(m.pods.byName))
	for _, ps := range m.pods.byName { // any order: so it says
		if pl := m.table.Pod(ps.pod.UID); pl != nil {
			pods = append(pods, pl.Pod)
		} else if ps.entry != nil {
			pods = append(pods, ps.entry.Pod)
		}
	}
	return pods
}

// Knows reports whether the machine knows a pod of the name that is not deleted.
func (m *Machine) Knows(name types.NamespacedName) bool {
	ps := m.pods.byName[name]
	return ps != nil && ps.goneByRead == nil
}

// Profiles returns the names of the profiles, sorted.
func (m *Machine) Profiles() []string { return slices.Sorted(maps.Keys(m.profiles)) }

// Changed returns what the last step changed first.
func (m *Machine) Changed() Change { return m.changed }

// Panics returns how many panics were contained to the pod at hand.
func (m *Machine) Panics() int { return m.guard.contained }

// ExtenderCycles returns the number of pods that wait for an extender.
func (m *Machine) ExtenderCycles() int { return len(m.extenders.cycles) }

// Assumed returns the number of pods placed on our word alone.
func (m *Machine) Assumed() int { return m.pods.assumedCount }

// Unshown returns the number of pods for which a write has not been shown by the API yet:
// a binding, a nomination or a deletion. A nomination that was taken back before it was
// written is never shown.
func (m *Machine) Unshown() int {
	n := 0
	for _, ps := range m.pods.byUID { // any order: a sum
		if e := ps.eviction; ps.assumed || ps.nominating != nil && *ps.nominating != ps.pod.NominatedNode || e != nil && !(e.gone || ps.pod.Terminating) {
			n++
		}
	}
	return n
}

// Undone returns how many bindings the API had shown, or confirmed, that turned out
// to be undone.
func (m *Machine) Undone() int { return m.undone }

// UnknownBindings returns the number of pods that may or may not be bound: the reply to
// the binding was lost, and no read has answered yet.
func (m *Machine) UnknownBindings() int {
	n := 0
	for _, ps := range m.pods.byUID { // any order: a sum
		if c := ps.binding; c != nil && (c.phase == bindClaimed || c.phase == readSent || c.phase == bindSent && c.lost.Reads() > 0) {
			n++
		}
	}
	return n
}

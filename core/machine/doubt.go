package machine

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
)

// doubt is about a pod that is held for bound, while the API may show it
// unbound: either that is older than the binding, or the binding was undone
// because etcd was restored from a backup. A read of the pod decides.
type doubt struct {
	unread int // reads that failed
	// settled: the API has shown the pod bound since the read was asked for.
	settled bool
}

// doubt asks whether the pod is bound. One whose binding is under way is asked
// about when that has ended.
func (m *Machine) doubt(p *object.Pod) {
	if m.doubts[p.UID] != nil {
		return
	}
	m.doubts[p.UID] = &doubt{}
	if m.flights[p.UID] == nil {
		m.askDoubt(p)
	}
}

func (m *Machine) askDoubt(p *object.Pod) {
	switch d := m.doubts[p.UID]; {
	case d == nil:
	case d.settled:
		delete(m.doubts, p.UID)
	default:
		m.do(Read{Pod: p, Delay: pauseAfter(d.unread)})
	}
}

// confirm notes that the API shows the pod bound.
func (m *Machine) confirm(uid types.UID) {
	if d := m.doubts[uid]; d != nil {
		d.settled = true
	}
}

// doubtRead takes in what the read says. A pod that is unbound is new to us.
func (m *Machine) doubtRead(e PodRead) {
	d, pl := m.doubts[e.UID], m.table.Pod(e.UID)
	if d == nil || m.flights[e.UID] != nil {
		return
	}
	if e.Err != nil && !d.settled {
		d.unread++
		m.askDoubt(pl.Pod)
		return
	}
	delete(m.doubts, e.UID)
	switch {
	case d.settled:
	case e.Pod == nil || e.Pod.UID != e.UID:
		m.podGone(PodGone{UID: e.UID, Namespace: pl.Pod.Namespace, Name: pl.Pod.Name})
	case e.Pod.NodeName != "":
		m.podSet(e.Pod)
	default:
		m.undone++
		m.podGone(PodGone{UID: e.UID, Namespace: pl.Pod.Namespace, Name: pl.Pod.Name})
		m.podSet(e.Pod)
	}
}

// Undone is how many bindings the API had shown, or confirmed, that turned out
// to be undone.
func (m *Machine) Undone() int { return m.undone }

// rewound doubts what only replies have told: the lists, which are taken in
// again, need not contradict it. Evictions are asked for again.
func (m *Machine) rewound() {
	m.table.ForgetReplies()
	for _, uid := range slices.Sorted(maps.Keys(m.assumed)) {
		m.doubt(m.table.Pod(uid).Pod)
	}
	for _, e := range m.evictions { // any order: each by itself
		e.answered = false
	}
	m.evictAgain()
}

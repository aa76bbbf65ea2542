package machine

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// eviction is a victim on its way out, from the Evict effect until the pod is
// gone and the effect answered. It is asked for once, however many pods prey
// on the victim.
type eviction struct {
	victim     *object.Pod
	node       string
	preemptors []*object.Pod // the first is who asked for it
	answered   bool
	gone       bool
}

// preempt carries a PostFilter plugin's plan out: victims go, nominations
// that it ends are cleared.
func (m *Machine) preempt(a *attempt, plan framework.PostFilterResult) {
	a.record.Result, a.record.NominatedNode = decision.Preempting, plan.Node
	a.record.PostFilter = nil
	for _, uid := range plan.ClearNominations {
		if s, ok := m.queue.State(uid); ok {
			m.clearNomination(s.Pod)
		}
	}
	for _, uid := range plan.Victims {
		pl := m.table.Pod(uid)
		if pl == nil {
			continue
		}
		a.record.Victims = append(a.record.Victims, types.NamespacedName{Namespace: pl.Pod.Namespace, Name: pl.Pod.Name})
		m.evict(pl.Pod, a.pod, plan.Node)
	}
	slices.SortFunc(a.record.Victims, func(x, y types.NamespacedName) int {
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
}

// evict sends a victim away. One that waits in Permit never reached the API:
// it is rejected in memory.
func (m *Machine) evict(victim, preemptor *object.Pod, node string) {
	f := m.flights[victim.UID]
	if f != nil && f.phase == waiting {
		m.fail(f.attempt, m.permitRejection(f, "", "preempted"), f)
		m.preempted(victim, preemptor, explain.Preempted(preemptor.UID, node)+" (in kube-scheduler memory).")
		return
	}
	if victim.Terminating || f != nil && f.phase == retracting {
		return
	}
	if e := m.evictions[victim.UID]; e != nil {
		e.preemptors = append(e.preemptors, preemptor)
		return
	}
	m.evictions[victim.UID] = &eviction{victim: victim, node: node, preemptors: []*object.Pod{preemptor}}
	m.do(Evict{Victim: victim, Preemptor: preemptor, Node: node})
}

func (m *Machine) preempted(victim, preemptor *object.Pod, note string) {
	m.do(Announce{Pod: victim, Reason: "Preempted", Action: "Preempting", Note: note, Related: preemptor})
}

// evicted takes in the answer to an Evict. Where it failed, those who counted
// on it try again, after an error backoff: an API that refuses once may go on
// refusing.
func (m *Machine) evicted(e Evicted) {
	ev := m.evictions[e.Victim]
	if ev == nil || ev.answered {
		return
	}
	ev.answered = true
	if e.Err == nil {
		m.preempted(ev.victim, ev.preemptors[0], explain.Preempted(ev.preemptors[0].UID, ev.node))
	}
	if e.Err != nil || ev.gone {
		delete(m.evictions, e.Victim)
	}
	if e.Err != nil {
		for _, p := range ev.preemptors {
			m.queue.Retry(m.now, p.UID)
		}
	}
}

// evictionDone notes that a victim is gone.
func (m *Machine) evictionDone(uid types.UID) {
	if ev := m.evictions[uid]; ev != nil {
		if ev.gone = true; ev.answered {
			delete(m.evictions, uid)
		}
	}
}

// evicting tells whether the pod's eviction was asked for and has not failed.
func (m *Machine) evicting(uid types.UID) bool { return m.evictions[uid] != nil }

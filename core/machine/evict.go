package machine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
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

// hunt is what a pod has preempted last.
type hunt struct {
	node    string
	victims []types.UID
}

// preempt carries a PostFilter plugin's plan out: victims go, nominations
// that it ends are cleared.
func (m *Machine) preempt(a *attempt, plugin string, plan framework.PostFilterResult) {
	a.record.Result, a.record.NominatedNode = decision.ResultPreempting, plan.NominatedNodeName
	a.record.PostFilter = nil
	for _, uid := range plan.ClearNominations {
		if s, ok := m.queue.State(uid); ok {
			m.clearNomination(s.Pod)
		}
	}
	delete(m.hunts, a.pod.UID)
	for _, uid := range plan.Victims {
		pl := m.table.Pod(uid)
		if pl == nil {
			continue
		}
		a.record.Victims = append(a.record.Victims, types.NamespacedName{Namespace: pl.Pod.Namespace, Name: pl.Pod.Name})
		m.evict(pl.Pod, a.pod, plan.NominatedNodeName, plugin)
	}
	if prey := slices.DeleteFunc(slices.Clone(plan.Victims), func(uid types.UID) bool { return !m.evicting(uid) }); len(prey) > 0 {
		m.hunts[a.pod.UID] = hunt{plan.NominatedNodeName, prey}
	}
	slices.SortFunc(a.record.Victims, func(x, y types.NamespacedName) int {
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
}

// evict sends a victim away. One whose binding has not gone out yet is stopped
// in memory, and tried again later; the API never hears of it.
func (m *Machine) evict(victim, preemptor *object.Pod, node, plugin string) {
	f, e := m.flights[victim.UID], m.evictions[victim.UID]
	switch {
	case victim.Terminating:
	case e != nil:
		e.preemptors = append(e.preemptors, preemptor)
	case f != nil && f.failed != nil:
		f.preemptors = append(f.preemptors, preemptor)
	case f != nil && m.stop(f, preemptor, plugin):
		m.preempted(victim, preemptor, explain.Preempted(preemptor.UID, node)+" (in kube-scheduler memory).")
	default:
		m.evictions[victim.UID] = &eviction{victim: victim, node: node, preemptors: []*object.Pod{preemptor}}
		m.do(Evict{Victim: victim, Preemptor: preemptor, Node: node})
	}
}

// stop ends a flight that Permit or PreBind holds, in v1.36's words; one that
// has written something when that is taken back. A pod whose binding is under
// way cannot be stopped.
func (m *Machine) stop(f *flight, preemptor *object.Pod, plugin string) bool {
	err := fmt.Errorf("preempted by %s", plugin)
	switch f.phase {
	case waiting:
		err = errors.New("waiting on permit for pod: preempted")
	case writing, awaiting:
	default:
		return false
	}
	f.preemptors = []*object.Pod{preemptor}
	m.fail(f.attempt, &decision.Status{Code: decision.Error, Plugin: plugin, Err: err}, f)
	return true
}

func (m *Machine) preempted(victim, preemptor *object.Pod, note string) {
	m.do(Announce{Pod: victim, Reason: "Preempted", Action: "Preempting", Note: note, Related: preemptor})
}

// evictAgain asks for every eviction that was not answered: what was asked for
// may have been lost. An eviction names a UID, so that it can do no harm twice.
func (m *Machine) evictAgain() {
	for _, uid := range slices.Sorted(maps.Keys(m.evictions)) {
		if e := m.evictions[uid]; !e.answered {
			m.do(Evict{Victim: e.victim, Preemptor: e.preemptors[0], Node: e.node})
		}
	}
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
	switch {
	case e.Err != nil:
		delete(m.evictions, e.Victim)
		m.retry(ev.preemptors)
	case ev.gone:
		m.over(ev)
	}
}

// retry lets those try again who counted on a victim that stays.
func (m *Machine) retry(preemptors []*object.Pod) {
	for _, p := range preemptors {
		m.queue.Retry(m.now, p.UID)
	}
}

// evictionDone notes that a victim is gone.
func (m *Machine) evictionDone(uid types.UID) {
	if ev := m.evictions[uid]; ev != nil {
		if ev.gone = true; ev.answered {
			m.over(ev)
		}
	}
}

// over ends an eviction.
func (m *Machine) over(ev *eviction) {
	delete(m.evictions, ev.victim.UID)
	m.hurry(ev.preemptors)
}

// hurry has those tried whose victims are all gone. Until then they wait out
// their backoff: each victim that goes calls all preemptors, and were they all
// tried each time, a thousand of them would be tried a million times.
func (m *Machine) hurry(preemptors []*object.Pod) {
	for _, p := range preemptors {
		if m.hunting(p.UID) == "" {
			m.queue.Hurry(m.now, p.UID)
		}
	}
}

// evicting tells whether the pod is on its way out for others: its eviction was
// asked for and has not failed, or its binding is being stopped.
func (m *Machine) evicting(uid types.UID) bool {
	f := m.flights[uid]
	return m.evictions[uid] != nil || f != nil && f.failed != nil
}

// hunting is the node on which victims that the pod has preempted are on their
// way out, "" when none is.
func (m *Machine) hunting(uid types.UID) string {
	h := m.hunts[uid]
	if slices.ContainsFunc(h.victims, m.evicting) {
		return h.node
	}
	delete(m.hunts, uid)
	return ""
}

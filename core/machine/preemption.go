package machine

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// preemption is the last preemption of a pod: the node, and the victims that are leaving.
type preemption struct {
	node    string
	victims []types.UID
}

// eviction is a victim on its way out, from the Evict effect until the pod is
// gone and the effect replied to. It is asked for once, however many pods
// preempt the victim.
type eviction struct {
	victim     *object.Pod
	node       string
	preemptors []*object.Pod    // the first is who asked for it
	group      *object.PodGroup // for which the first asked, if for all of it
	replied    bool
	gone       bool
	undone     bool // perhaps: etcd was restored from a backup while it was asked for
}

// preempt evicts the victims of a PostFilter plugin's plan.
func (m *Machine) preempt(a *attempt, plugin string, plan framework.PostFilterResult) {
	a.record.Result, a.record.NominatedNode = decision.ResultPreempting, plan.NominatedNodeName
	a.record.PostFilter = nil
	for _, uid := range plan.Victims {
		if pl := m.table.Pod(uid); pl != nil {
			a.record.Victims = append(a.record.Victims, pl.Pod.NamespacedName())
		}
	}
	m.evictAll(a.state, preemptor{pod: a.pod}, plan.Victims, plan.NominatedNodeName, plugin)
	slices.SortFunc(a.record.Victims, func(x, y types.NamespacedName) int {
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
}

// evictAll evicts the victims, counts the preemption, and records which of them the pod
// waits for. The pod is the preemptor, or stands for its group.
func (m *Machine) evictAll(ps *podState, by preemptor, victims []types.UID, node, plugin string) {
	if slices.ContainsFunc(victims, m.preemptors.stays) {
		ps.preemptionCount.add(m.now)
	}
	for _, uid := range victims {
		if pl := m.table.Pod(uid); pl != nil {
			m.evict(m.pods.byUID[uid], pl.Pod, by, node, plugin)
		}
	}
	ps.preemption = nil
	if leaving := slices.DeleteFunc(slices.Clone(victims), func(uid types.UID) bool { return !m.preemptors.evicting(uid) }); len(leaving) > 0 {
		ps.preemption = &preemption{node, leaving}
	}
}

// preemptor is the pod that preempts, or a pod that stands for its group.
type preemptor struct {
	pod   *object.Pod
	group *object.PodGroup // nil: the pod
}

// evict evicts one victim. A victim whose binding has not been sent is stopped in memory
// and tried again later, without a call of the API.
func (m *Machine) evict(ps *podState, victim *object.Pod, by preemptor, node, plugin string) {
	c, e := ps.binding, ps.eviction
	switch {
	case victim.Terminating:
	case e != nil:
		e.preemptors = append(e.preemptors, by.pod)
	case c != nil && c.failed != nil:
		c.preemptors = append(c.preemptors, by.pod)
	case c != nil && m.stopBindingCycle(c, by.pod, plugin):
		m.reportPreempted(victim, by, node, " (in kube-scheduler memory).")
	default:
		ps.eviction = &eviction{victim: victim, node: node, preemptors: []*object.Pod{by.pod}, group: by.group}
		m.evictions++
		m.emit(Evict{Victim: victim, Preemptor: by.pod, Group: by.group, Node: node})
	}
}

// stopBindingCycle ends a cycle that Permit or PreBind holds, in v1.36's words;
// one that has written something when that is reverted. A pod whose binding was
// sent cannot be stopped.
func (m *Machine) stopBindingCycle(c *bindingCycle, preemptor *object.Pod, plugin string) bool {
	why := &decision.Status{Code: decision.Error, Plugin: plugin, Err: fmt.Errorf("preempted by %s", plugin)}
	switch c.phase {
	case waitOnPermit:
		why = permitPreemption(plugin, "preempted")
	case writesSent, waitForWrites, preBindCalled:
	default:
		return false
	}
	c.preemptors = []*object.Pod{preemptor}
	m.fail(c.attempt, why)
	return true
}

func (m *Machine) reportPreempted(victim *object.Pod, by preemptor, node, more string) {
	uid := by.pod.UID
	if by.group != nil {
		uid = by.group.UID
	}
	note := explain.Preempted(by.group != nil, uid, node) + more
	m.emit(PublishEvent{Pod: victim, Reason: ReasonPreempted, Action: "Preempting", Note: note, Related: by.pod, RelatedGroup: by.group})
}

// evictReplied handles the reply to an Evict effect. If it failed, the preemptors try
// again after an error backoff, since an API that refuses once may go on refusing.
func (m *Machine) evictReplied(r EvictReply) {
	ps := m.pods.byUID[r.Victim]
	if ps == nil || ps.eviction == nil || ps.eviction.replied {
		return
	}
	e := ps.eviction
	e.replied = true
	m.evictions--
	if r.Err == nil {
		m.reportPreempted(e.victim, preemptor{e.preemptors[0], e.group}, e.node, "")
	}
	switch {
	case r.Err != nil || e.undone:
		m.dropEviction(ps)
	case e.gone:
		m.endEviction(ps)
	}
	m.pods.forget(ps)
}

// waitsForEvictions reports whether decisions wait for the replies to evictions.
func (m *Machine) waitsForEvictions() bool { return m.options.WaitForEvictions && m.evictions > 0 }

// rewindEvictions drops what was evicted before etcd was restored: the victim may be
// there again, and the preemptor may not. Who still needs the room preempts anew.
func (m *Machine) rewindEvictions() {
	for _, ps := range m.pods.sorted() {
		switch e := ps.eviction; {
		case e == nil:
		case e.replied:
			m.dropEviction(ps)
			m.pods.forget(ps)
		default:
			e.undone = true
		}
	}
}

// dropEviction gives up the eviction of a victim that stays. Its preemptors try again
// after a backoff.
func (m *Machine) dropEviction(victim *podState) {
	preemptors := victim.eviction.preemptors
	victim.eviction = nil
	m.preemptors.retryAfterError(preemptors)
}

// victimGone records that a pod, which may be a victim, is deleted.
func (m *Machine) victimGone(ps *podState) {
	if e := ps.eviction; e != nil {
		if e.gone = true; e.replied {
			m.endEviction(ps)
		}
	}
}

// endEviction ends the eviction of a victim that is deleted. Its preemptors may try again
// without waiting for their backoff.
func (m *Machine) endEviction(victim *podState) {
	preemptors := victim.eviction.preemptors
	victim.eviction = nil
	m.preemptors.skipBackoffs(preemptors)
}

// evicting reports whether the pod is being preempted: its eviction was requested and has
// not failed, or its binding cycle is being stopped.
func (ps *podState) evicting() bool {
	return ps.eviction != nil || ps.binding != nil && ps.binding.failed != nil
}

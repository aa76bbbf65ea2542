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
	"github.com/berth-scheduler/berth/core/quota"
)

// preemption is a pod's last preemption: the nominated node, and the victims that were
// leaving.
type preemption struct {
	node    string
	victims []types.UID
}

// eviction is the eviction of a victim, from the Evict effect until the pod is gone and the
// reply has come. There is one, however many pods preempt the victim.
type eviction struct {
	victim     *object.Pod
	node       string           // to which the preemptor is nominated; AnyNode for a group
	preemptors []*object.Pod    // the pods that wait for it; the first is in the effect
	group      *object.PodGroup // the first preemptor's, if for the whole group; else nil
	replied    bool             // EvictReply has come
	gone       bool             // the victim is deleted
	undone     bool             // etcd was restored before the reply: the victim may exist again
}

// evictions handles the evictions of all preemptions' victims, from the Evict effect
// until the victim is gone.
type evictions struct {
	*step
	options    *Options
	pods       *pods
	preemptors *preemptors
	bindings   *bindingCycles
	open       int // evictions without a reply
}

// preempt evicts the victims in the result of a PostFilter plugin. It writes the victims, the
// nominated node and the result Preempting to the attempt's record.
func (v *evictions) preempt(a *attempt, plugin string, plan framework.PostFilterResult) {
	a.record.Result, a.record.NominatedNode = decision.ResultPreempting, plan.NominatedNodeName
	a.record.PostFilter = plan.Messages()
	for _, uid := range plan.Victims {
		if pl := v.table.Pod(uid); pl != nil {
			a.record.Victims = append(a.record.Victims, pl.Pod.NamespacedName())
		}
	}
	v.evictAll(a.state, preemptor{pod: a.pod}, plan.Victims, plan.NominatedNodeName, plugin)
	slices.SortFunc(a.record.Victims, func(x, y types.NamespacedName) int {
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
}

// evictAll evicts the victims and records in ps, the preemptor's state, the node and which victims
// it waits for. The preemption counts (preemptionCount) if a victim was not leaving already. plugin
// is the PostFilter plugin.
func (v *evictions) evictAll(ps *podState, by preemptor, victims []types.UID, node, plugin string) {
	if slices.ContainsFunc(victims, v.preemptors.stays) {
		ps.preemptionCount.add(v.now)
	}
	for _, uid := range victims {
		if pl := v.table.Pod(uid); pl != nil {
			v.evict(v.pods.byUID[uid], pl.Pod, by, node, plugin)
		}
	}
	ps.preemption = nil
	if leaving := slices.DeleteFunc(slices.Clone(victims), func(uid types.UID) bool { return !v.preemptors.evicting(uid) }); len(leaving) > 0 {
		ps.preemption = &preemption{node, leaving}
	}
}

// preemptor is the pod that preempts, or a pod that stands for its group.
type preemptor struct {
	pod   *object.Pod
	group *object.PodGroup // nil: the pod
}

// evict evicts one victim, whose state is ps. If its eviction is under way, it only records that by
// waits for it, too. A victim whose binding can still be stopped is not deleted: its cycle is
// stopped and it is tried again later. A victim that is being deleted already is left alone.
func (v *evictions) evict(ps *podState, victim *object.Pod, by preemptor, node, plugin string) {
	c, e := ps.binding, ps.eviction
	switch {
	case victim.Terminating:
	case e != nil:
		e.preemptors = append(e.preemptors, by.pod)
	case c != nil && c.failed != nil:
		c.preemptors = append(c.preemptors, by.pod)
	case c != nil && v.bindings.stop(c, by.pod, plugin):
		v.reportPreempted(victim, by, node, " (in kube-scheduler memory).")
	default:
		ps.eviction = &eviction{victim: victim, node: node, preemptors: []*object.Pod{by.pod}, group: by.group}
		v.open++
		v.emit(Evict{Victim: victim, Preemptor: by.pod, Group: by.group, Node: node, Reclaims: v.reclaims(by.pod, victim)})
	}
}

// reclaims reports whether pod and victim both have an ElasticQuota, and not the same one.
func (v *evictions) reclaims(pod, victim *object.Pod) bool {
	queues := quota.Of(v.table)
	own, other := queues.Queue(pod.Namespace), queues.Queue(victim.Namespace)
	return own != nil && other != nil && own != other
}

// stop fails a binding cycle that Permit or PreBind holds, because its pod is preempted; what it
// has written is reverted first. It returns false and does nothing if the binding was sent already.
func (b *bindingCycles) stop(c *bindingCycle, preemptor *object.Pod, plugin string) bool {
	why := &decision.Status{Code: decision.Error, Plugin: plugin, Err: fmt.Errorf("preempted by %s", plugin)}
	switch c.phase {
	case waitOnPermit:
		why = permitPreemption(plugin, "preempted")
	case writesSent, waitForWrites, preBindCalled:
	default:
		return false
	}
	c.preemptors = []*object.Pod{preemptor}
	b.fail(c.attempt, why)
	return true
}

// reportPreempted emits the victim's Preempted event; more is appended to its note.
func (v *evictions) reportPreempted(victim *object.Pod, by preemptor, node, more string) {
	uid := by.pod.UID
	if by.group != nil {
		uid = by.group.UID
	}
	note := explain.Preempted(by.group != nil, uid, node) + more
	v.emit(PublishEvent{Pod: victim, Reason: ReasonPreempted, Action: "Preempting", Note: note, Related: by.pod, RelatedGroup: by.group})
}

// replied handles the reply to an Evict effect. A success emits the victim's Preempted event. After
// a failure the preemptors try again after an error backoff, since an API that refuses once may go
// on refusing.
func (v *evictions) replied(r EvictReply) {
	ps := v.pods.byUID[r.Victim]
	if ps == nil || ps.eviction == nil || ps.eviction.replied {
		return
	}
	e := ps.eviction
	e.replied = true
	v.open--
	if r.Err == nil {
		v.reportPreempted(e.victim, preemptor{e.preemptors[0], e.group}, e.node, "")
	}
	switch {
	case r.Err != nil || e.undone:
		v.drop(ps)
	case e.gone:
		v.finish(ps)
	}
	v.pods.forget(ps)
}

// awaited reports whether no scheduling cycle may start now: Options.WaitForEvictions is set, and
// an eviction has no reply.
func (v *evictions) awaited() bool { return v.options.WaitForEvictions && v.open > 0 }

// rewind handles a restore of etcd: evictions that were replied to are given up, as the
// victim may be there again. Preemptors that still need the resources preempt anew.
func (v *evictions) rewind() {
	for _, ps := range v.pods.sorted() {
		switch e := ps.eviction; {
		case e == nil:
		case e.replied:
			v.drop(ps)
			v.pods.forget(ps)
		default:
			e.undone = true
		}
	}
}

// drop gives up the eviction of a victim that stays. Its preemptors try again after an
// error backoff.
func (v *evictions) drop(victim *podState) {
	preemptors := victim.eviction.preemptors
	victim.eviction = nil
	v.preemptors.retryAfterError(preemptors)
}

// gone records that a pod is deleted. If it was a victim whose eviction has been answered,
// the pods that wait for it may be tried again.
func (v *evictions) gone(ps *podState) {
	if e := ps.eviction; e != nil {
		if e.gone = true; e.replied {
			v.finish(ps)
		}
	}
}

// finish ends the eviction of a victim that is deleted. Its preemptors may try again
// without waiting for their backoff.
func (v *evictions) finish(victim *podState) {
	preemptors := victim.eviction.preemptors
	victim.eviction = nil
	v.preemptors.skipBackoffs(preemptors)
}

// evicting reports whether the pod is being preempted: its eviction was requested and has
// not failed, or its binding cycle is being stopped.
func (ps *podState) evicting() bool {
	return ps.eviction != nil || ps.binding != nil && ps.binding.failed != nil
}

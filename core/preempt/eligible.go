package preempt

import (
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/quota"
)

// kube-scheduler's reasons for which a pod may not preempt others.
const (
	reasonNever       = "not eligible due to preemptionPolicy=Never."
	reasonTerminating = "not eligible due to a terminating pod on the nominated node."
)

// NotEligible returns why the pod may not preempt others now, in kube-scheduler's words; "" if it
// may. A pod that has preempted waits until its victims are gone, unless the node cannot
// take it any more whatever pods leave.
func NotEligible(c *framework.PostFilterCall) string {
	if c.Pod.NeverPreempts {
		return reasonNever
	}
	if len(VictimsLeaving(c)) > 0 {
		return reasonTerminating
	}
	return ""
}

// VictimsLeaving returns the pods for which the pod waits before it preempts again: on the node
// PreemptedNodeName those that it may preempt and that a preemption evicts or deleted, and its own
// victims on other nodes. It returns nil if the pod has no such node, or if that node cannot take
// the pod any more whatever pods leave.
func VictimsLeaving(c *framework.PostFilterCall) (victims []*object.Pod) {
	row, ok := c.Table.Find(c.Nominations.PreemptedNodeName)
	if !ok || c.Filters.Code(row) == decision.UnschedulableAndUnresolvable {
		return nil
	}
	victims = slices.DeleteFunc(slices.Clone(c.Nominations.Leaving), func(p *object.Pod) bool {
		pl := c.Table.Pod(p.UID)
		return pl == nil || pl.Row == row
	})
	for _, pl := range c.Table.Pods(row) {
		if !mayBeVictim(c, pl.Pod) {
			continue
		}
		if pl.Pod.Terminating && pl.Pod.Disrupted || c.Disruption.Evicting(pl.Pod.UID) {
			victims = append(victims, pl.Pod)
		}
	}
	return victims
}

// mayBeVictim reports whether the pod at hand may preempt p in some state of the quotas: p has a
// lower priority or, if ElasticQuotas are followed, both pods have queues, and not the same one.
func mayBeVictim(c *framework.PostFilterCall, p *object.Pod) bool {
	if p.Priority < c.Pod.Priority || c.Quotas == nil {
		return p.Priority < c.Pod.Priority
	}
	queues := quota.Of(c.Table)
	return p.Namespace != c.Pod.Namespace && queues.Queue(c.Pod.Namespace) != nil && queues.Queue(p.Namespace) != nil
}

// nominationsToClear returns the pods of lower priority that are nominated to the node. As
// in kube-scheduler they lose the nomination if the pod is nominated there, and are tried again.
func nominationsToClear(c *call, node string) []*object.Pod {
	var pods []*object.Pod
	for _, p := range c.Nominations.PodsForNode(node) {
		if p.Priority < c.Pod.Priority {
			pods = append(pods, p)
		}
	}
	return pods
}

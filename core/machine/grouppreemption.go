package machine

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// anyNode stands for the node's name in Events about victims of a pod group, which are on
// nodes all over the cluster (v1.36, actuatePodGroupPreemption).
const anyNode = "cluster"

// preemptForGroup searches victims for a pod group that does not fit. If it finds any
// they are in c.victims; if not, the reason is added to the group's status.
func (l *podGroups) preemptForGroup(c *groupCycle) {
	if c.status == nil || c.status.Code != decision.Unschedulable {
		return
	}
	found := l.groupVictims(c)
	switch {
	case found.Status == nil:
		c.preempts, c.victims = true, found.Victims
	case found.Status.Code == decision.Error:
		c.status = found.Status
	default:
		status := *c.status
		status.Reasons = append(slices.Clip(status.Reasons), explain.Status(found.Status))
		c.status = &status
	}
}

// groupVictims calls the PodGroupPostFilter plugin and returns its victims, or a status
// that says why there are none.
func (l *podGroups) groupVictims(c *groupCycle) (found framework.PodGroupPostFilterResult) {
	refused := func(why string) framework.PodGroupPostFilterResult {
		return framework.PodGroupPostFilterResult{Status: &decision.Status{Code: decision.Unschedulable, Reasons: []string{why}}}
	}
	pl := c.profile.PodGroupPostFilter
	if pl == nil {
		return refused("default preemption plugin is not registered, workload aware preemption is disabled")
	}
	g := l.named(c.name)
	switch {
	case g == nil:
		return framework.PodGroupPostFilterResult{Status: decision.Failed("failed to get pod group object: podgroup.scheduling.k8s.io %q not found", c.name.Name)}
	case g.TopologyKey != "":
		return refused("workload aware preemption is not supported for pod groups with scheduling constraints")
	case slices.ContainsFunc(c.members, func(mb *groupMember) bool { return l.preemptors.victimsLeaving(mb.state) != "" }):
		return refused("waiting for the preemption for this pod group to be finished")
	}
	call := &framework.PodGroupPostFilterCall{
		Now: l.now, Table: l.table, Group: g, Try: func() *decision.Status { return l.tryAgain(c) }, Budgets: l.budgets.list,
	}
	for _, mb := range c.members {
		call.Pods = append(call.Pods, mb.pod)
	}
	tried := *c
	c.trial = true
	err := l.guard.run("PodGroupPostFilter", pl.Name, func() { found = pl.PodGroup.PostFilter(call) })
	*c = tried
	l.attempts.stepDone(c, "Running PodGroupPostFilter plugins done")
	if h := c.profile.Host; h != nil {
		h.Show(l.table)
	}
	if err != nil {
		return framework.PodGroupPostFilterResult{Status: &decision.Status{Code: decision.Error, Err: err}}
	}
	if found.Status == nil && l.preemptors.holdsBack(c.members[0].attempt, uidsOf(found.Victims)) {
		return refused(heldBack)
	}
	return found
}

// tryAgain tries to place the group on the table as it is now, for the plugin that searches
// victims. It returns nil if the group fits. It leaves nothing assumed.
func (l *podGroups) tryAgain(c *groupCycle) *decision.Status {
	c.groupTry = l.newTry(c, nil)
	l.decideGroup(c)
	return c.status
}

// evictForGroup evicts the group's victims, in the name of its first pod.
func (l *podGroups) evictForGroup(c *groupCycle) {
	first := c.members[0]
	l.evictions.evictAll(first.state, preemptor{first.pod, l.named(c.name)}, uidsOf(c.victims), anyNode, c.profile.PodGroupPostFilter.Name)
}

// uidsOf returns the pods' UIDs, in order.
func uidsOf(pods []*object.Pod) (uids []types.UID) {
	for _, p := range pods {
		uids = append(uids, p.UID)
	}
	return uids
}

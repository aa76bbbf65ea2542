package machine

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/preempt"
	"github.com/berth-scheduler/berth/core/table"
)

// AnyNode stands for the node's name in Events about victims of a pod group, which are on
// nodes all over the cluster (kube-scheduler, actuatePodGroupPreemption).
const AnyNode = "cluster"

// preemptForGroup runs the PodGroupPostFilter plugins for a group whose status is Unschedulable. If
// they find victims, these are in c.victims. What the plugins say is added to the status; an error
// replaces it.
func (l *podGroups) preemptForGroup(c *groupCycle) {
	if c.status == nil || c.status.Code != decision.Unschedulable {
		return
	}
	answer := l.groupPostFilter(c)
	if answer.Code == decision.Error {
		c.status = answer
		return
	}
	if text := explain.Status(answer); text != "" {
		status := *c.status
		status.Reasons = append(slices.Clip(status.Reasons), text)
		c.status = &status
	}
}

// groupPostFilter runs the PodGroupPostFilter plugins until one ends the search: it finds victims
// (Success), or nobody who could be one (UnschedulableAndUnresolvable), or fails. It returns the
// status of that one, else Unschedulable with the reasons of all.
func (l *podGroups) groupPostFilter(c *groupCycle) *decision.Status {
	answer := &decision.Status{Code: decision.Unschedulable}
	searched := false
	for _, pl := range c.profile.PodGroupPostFilter {
		var found framework.PodGroupPostFilterResult
		if err := l.guard.run("PodGroupPostFilter", pl.Name, func() { found = l.askPostFilter(c, pl, searched) }); err != nil {
			return &decision.Status{Code: decision.Error, Err: err}
		}
		searched = searched || found.Searched
		switch s := found.Status; s.Code {
		case decision.Success, decision.UnschedulableAndUnresolvable:
			return s
		case decision.Unschedulable:
			answer.Reasons = append(answer.Reasons, s.Reasons...)
		default:
			return decision.Failed("error in %q PodGroupPostFilter plugins: %w", pl.Name, errorOf(s))
		}
	}
	return answer
}

// askPostFilter runs one PodGroupPostFilter plugin. If it finds victims they are in c, with the
// nodes for the group's pods; all else in c is as before. searched is set if a plugin before it has
// searched.
func (l *podGroups) askPostFilter(c *groupCycle, pl *framework.Plugin, searched bool) (found framework.PodGroupPostFilterResult) {
	order := "" // in which the group fits without some victims
	call := &framework.PodGroupPostFilterCall{
		Now: l.now, Table: l.table, Group: c.group, Constrained: l.constrained(c), Budgets: l.budgets.of(c.profile), Strict: c.profile.StrictBudgets, Leaving: l.leavingFor(c),
		Quotas: c.profile.Quotas, Nominated: l.nominations.all(), Evicting: l.preemptors.evicting, Searched: searched,
		Try: func() ([]framework.GroupAssignment, *decision.Status) {
			assignments, status := l.tryAgain(c)
			order = cmp.Or(c.order, order)
			return assignments, status
		},
		Fits: func(a framework.GroupAssignment) bool {
			return l.engine.DecideWithin([]table.Row{a.Row}, l.pods.byUID[a.Pod.UID].request, l.nominations).Row >= 0
		},
	}
	if c.profile.Host == nil { // else each answer is a call of a hosted plugin
		of, _ := levelsOf(l.options, c.profile, c.group)
		call.Rooms = func() framework.GroupRooms { return newDomainSearch(l, c, of).rooms() }
	}
	for _, mb := range c.members {
		call.Pods = append(call.Pods, mb.pod)
	}
	tried := *c
	c.trial = true
	found = framework.PodGroupPostFilterResult{Status: decision.Failed("plugin %q panicked", pl.Name)}
	defer func() {
		tried.partial = tried.partial || c.partial
		*c = tried
		for _, mb := range c.members {
			l.nominateMember(mb, mb.kept) // the plugin may have placed and removed it
		}
		if l.takeResult(c, pl, &found); c.preempts {
			c.order = order
		}
		if h := c.profile.Host; h != nil {
			h.Show(l.table)
		}
		l.stepDone(c, "Running PodGroupPostFilter plugins done")
	}()
	return pl.PodGroup.PostFilter(call)
}

// takeResult records the victims that the plugin found, and the nodes for the group's pods. If the
// group has preempted too often, it changes found to Unschedulable instead.
func (l *podGroups) takeResult(c *groupCycle, pl *framework.Plugin, found *framework.PodGroupPostFilterResult) {
	if found.Status.Code != decision.Success {
		return
	}
	if victims := uidsOf(found.Victims); slices.ContainsFunc(c.members, func(mb *groupMember) bool { return l.preemptors.holdsBack(mb.attempt, victims) }) {
		found.Status = &decision.Status{Code: decision.Unschedulable, Reasons: []string{heldBack}}
		return
	}
	c.preempts, c.victims, c.evictedBy, c.nominated = true, found.Victims, pl.Name, map[types.UID]string{}
	for _, a := range found.Assignments {
		c.nominated[a.Pod.UID] = l.table.Name(a.Row)
	}
	for _, p := range found.Unnominated {
		c.nominated[p.UID] = ""
	}
}

// leavingFor reports whether victims of an earlier preemption for the group are still leaving, on
// any node. It is also true if a pod of the group is nominated to a node that preempted pods of
// lower priority are leaving.
func (l *podGroups) leavingFor(c *groupCycle) bool {
	return slices.ContainsFunc(c.members, func(mb *groupMember) bool {
		if l.preemptors.victimsLeaving(mb.state) != "" {
			return true
		}
		row, ok := l.table.Find(mb.kept)
		return ok && slices.ContainsFunc(l.table.Pods(row), func(pl *table.Placed) bool {
			leaves := pl.Pod.Terminating && pl.Pod.Disrupted || l.preemptors.evicting(pl.Pod.UID)
			return leaves && preempt.PriorityOf(l.table, pl.Pod) < c.group.Priority
		})
	})
}

// victimsLeaving reports whether victims of an earlier preemption for the group of this name
// are on their way out.
func (l *podGroups) victimsLeaving(name types.NamespacedName) bool {
	for uid := range l.table.Groups().Named(name).Unscheduled() {
		if ps := l.pods.byUID[uid]; ps != nil && l.preemptors.victimsLeaving(ps) != "" {
			return true
		}
	}
	return false
}

// nominated reports whether a waiting pod of the group is nominated to a node: the group has
// preempted others.
func (l *podGroups) nominated(name types.NamespacedName) bool {
	for uid := range l.table.Groups().Named(name).Unscheduled() {
		if l.pods.entry(uid).NominatedNode() != "" {
			return true
		}
	}
	return false
}

// handOn is called when ps is deleted. If ps has preempted in the name of its group, handOn passes
// the victims that ps waits for, and the count of its preemptions, to another waiting pod of the
// group.
func (l *podGroups) handOn(ps *podState) {
	if ps.preemption == nil && ps.preemptionCount.n == 0 || !l.has(ps.pod) {
		return
	}
	for uid := range l.table.Groups().Of(ps.pod).Unscheduled() {
		if heir := l.pods.byUID[uid]; heir != nil && heir != ps && heir.entry != nil {
			heir.preemption, heir.preemptionCount = ps.preemption, ps.preemptionCount
			return
		}
	}
}

// tryAgain tries to place the group on the table as it is now, for the plugin that searches
// victims. It leaves nothing assumed. status is nil if the group fits; assignments are then the
// nodes of the pods that fit.
func (l *podGroups) tryAgain(c *groupCycle) (assignments []framework.GroupAssignment, status *decision.Status) {
	c.groupTry = l.newTry(c, nil)
	c.again = c.members[0]
	l.decideGroup(c)
	c.again = nil
	if c.status != nil {
		return nil, c.status
	}
	for _, mb := range c.members {
		if mb.fits {
			assignments = append(assignments, framework.GroupAssignment{
				Assignment: framework.Assignment{Pod: mb.pod, Row: mb.row}, Local: mb.local,
				Place: func() { l.tryAssume(mb) }, Remove: func() { l.undoAssume(mb) },
			})
		}
	}
	return assignments, nil
}

// evictForGroup evicts the group's victims, in the name of its first pod.
func (l *podGroups) evictForGroup(c *groupCycle) {
	first := c.members[0]
	by := preemptor{first.pod, c.group}
	if c.group.Source != "" {
		by.group = nil // Events and conditions name PodGroups of scheduling.k8s.io alone
	}
	l.evictions.evictAll(first.state, by, uidsOf(c.victims), AnyNode, c.evictedBy)
}

// uidsOf returns the pods' UIDs, in order.
func uidsOf(pods []*object.Pod) (uids []types.UID) {
	for _, p := range pods {
		uids = append(uids, p.UID)
	}
	return uids
}

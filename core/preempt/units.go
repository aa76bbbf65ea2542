package preempt

import (
	"slices"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/index/priorities"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/table"
)

// While a pod of a pod group is placed anywhere, a single pod preempts by units: a group
// that is preempted as a whole goes from all its nodes, and at equal priority pods of groups
// are more important than others. On a node without pods of groups each pod is a unit, and
// the search is that among pods.

// byUnits reports whether victims are units.
func byUnits(t *table.Table) bool { return t.Groups().AnyPlaced() }

// unitsOn reports whether victims on the row are units of more than a pod each, or may be.
func unitsOn(t *table.Table, row table.Row) bool {
	return byUnits(t) && priorities.Of(t).Grouped(row)
}

// unitRules says which units a preemptor may have go.
type unitRules struct {
	priority int32          // of the preemptor
	reclaim  *quota.Reclaim // nil if no ElasticQuotas are followed
	entitled bool           // the preemptor may preempt pods of other queues
}

// rules returns which units the pod at hand may have go.
func (c *call) rules() unitRules { return unitRules{c.Pod.Priority, c.reclaim, c.entitled} }

// excludes reports whether the unit of the pod, of that priority, may not go in any state of
// the quotas that entitles the preemptor as it is entitled now.
func (r *unitRules) excludes(p *object.Pod, priority int32) bool {
	if r.entitled {
		return false
	}
	return priority >= r.priority || r.reclaim != nil && !r.reclaim.SharesQueue(p)
}

// together returns those of the units that may go together: no queue falls below its min. The
// least important are decided on first. It sorts the units.
func (r *unitRules) together(units []*unit) (may []*unit) {
	slices.SortFunc(units, moreImportantUnit)
	if !r.entitled {
		return units
	}
	r.reclaim.Restart()
	for _, u := range slices.Backward(units) {
		if r.reclaim.Allows(u.pods, u.priority) {
			may = append(may, u)
		}
	}
	slices.Reverse(may)
	return may
}

// alone returns those of the units that may go if no other one does.
func (r *unitRules) alone(units []*unit) (may []*unit) {
	for _, u := range units {
		r.reclaim.Restart()
		if r.reclaim.Allows(u.pods, u.priority) {
			may = append(may, u)
		}
	}
	return may
}

// unitList collects the units that the rules do not exclude.
type unitList struct {
	unitRules
	table  *table.Table
	now    time.Time
	units  []*unit
	wholes map[*object.PodGroup]bool // those of which the unit is in units
}

// add adds the units of which pods are on the row, unless they are in the list.
func (l *unitList) add(row table.Row) {
	for _, pl := range l.table.Pods(row) {
		p := pl.Pod
		g := groupOf(l.table, p)
		priority := priorityIn(g, p)
		if l.wholes[g] || l.excludes(p, priority) {
			continue
		}
		u := &unit{priority: priority, grouped: p.KubernetesGroup() != ""}
		if g == nil || !g.PreemptedWhole {
			u.add(p, row, l.now)
		} else {
			if l.wholes == nil {
				l.wholes = map[*object.PodGroup]bool{}
			}
			l.wholes[g] = true
			for uid := range l.table.Groups().Of(p).Placed() {
				if member := l.table.Pod(uid); l.table.Node(member.Row) != nil { // else its node is gone
					u.add(member.Pod, member.Row, l.now)
				}
			}
		}
		l.units = append(l.units, u)
	}
}

// planByUnits returns a plan for the row in which units go, or the blocker if the pod does
// not fit there even without all units of lower priority. It leaves the table as it was.
func planByUnits(c *call, row table.Row) (*Plan, *decision.Blocker) {
	list := unitList{unitRules: c.rules(), table: c.Table, now: c.Now}
	list.add(row)
	units := list.together(list.units)
	if len(units) == 0 {
		return nil, &noVictims
	}
	mark := c.Table.Checkpoint()
	defer c.Table.Undo(mark)
	for _, u := range units {
		u.takeFrom(c.Table)
	}
	if b := c.Filters.Run(row); b != nil {
		return nil, b
	}
	guarded, others := splitUnits(units, c.Disruption.Budgets)
	plan := &Plan{Node: c.Table.Name(row), uid: nodeUID(c.Table, row)}
	for _, u := range slices.Concat(guarded, others) {
		if u.putBack(c.Table); c.Filters.Run(row) != nil {
			u.takeFrom(c.Table)
			plan.NumPDBViolations += u.violations
		}
	}
	for _, u := range units {
		if u.gone {
			plan.Victims = append(plan.Victims, u.pods...)
		}
	}
	return plan, nil
}

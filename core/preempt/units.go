package preempt

import (
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// While a pod of a pod group is placed anywhere, a single pod preempts by units: a group
// that is preempted as a whole goes from all its nodes, and at equal priority pods of groups
// are more important than others.

// byUnits reports whether victims are units.
func byUnits(t *table.Table) bool { return t.Groups().AnyPlaced() }

// unitsOn returns the units of lower priority than the pod at hand that have a pod on the
// row.
func unitsOn(c *call, row table.Row) (units []*unit) {
	var wholes []*object.PodGroup
	for _, pl := range c.Table.Pods(row) {
		p := pl.Pod
		u := &unit{priority: PriorityOf(c.Table, p), grouped: p.PodGroup() != ""}
		if u.priority >= c.Pod.Priority {
			continue
		}
		if g := groupOf(c.Table, p); g == nil || !g.PreemptedWhole {
			u.add(p, row, c.Now)
		} else if !slices.Contains(wholes, g) {
			wholes = append(wholes, g)
			for uid := range c.Table.Groups().Of(p).Placed() {
				member := c.Table.Pod(uid)
				u.add(member.Pod, member.Row, c.Now)
			}
		} else {
			continue
		}
		units = append(units, u)
	}
	return units
}

// planByUnits returns a plan for the row in which units go, or the blocker if the pod does
// not fit there even without all units of lower priority. It leaves the table as it was.
func planByUnits(c *call, row table.Row) (*Plan, *decision.Blocker) {
	units := unitsOn(c, row)
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
	slices.SortFunc(units, moreImportantUnit)
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

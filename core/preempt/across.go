package preempt

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/table"
)

// A pod that its ElasticQuota rejects may have room on a node where nobody runs who has
// borrowed from its queue. What it gets back then is on other nodes.

// across reports whether pods on other nodes than the pod's may have to go for it: it may get back
// what its queue has lent, and no node alone gives it that, or the quotas reject it as it is.
func across(c *call, plan *Plan) bool {
	if c.reclaim == nil || !c.entitled {
		return false
	}
	return plan == nil || quota.Of(c.Table).Exceeded(&quota.Ask{Pod: c.Pod, Nominated: c.Nominations.All, UnlistedZero: c.Quotas.UnlistedZero}) != nil
}

// findAcross returns the better one of the plan, nil for none, and the best with victims on any
// nodes; nil if there is none. On nodes that need as few pods of their own to go as any, it
// decides as for a pod group. It leaves the table as it was.
func findAcross(c *call, plan *Plan) *Plan {
	var best choice
	if plan != nil {
		best.replaceIfBetter(plan, c.Now)
	}
	rules, rows := c.rules(), rowsByNeed(c)
	if len(rows) == 0 {
		return plan
	}
	c.tryAcross(&best, rows, rules.together(c.unitsAnywhere()), func([]*unit) bool { return true })
	if best.Plan == nil { // what may go together is chosen by importance: others may do
		c.tryAcross(&best, rows, rules.alone(c.unitsAnywhere()), rules.permits)
	}
	if best.Plan != nil {
		best.NominationsToClear = nominationsToClear(c, best.Node)
	}
	return best.Plan
}

// unitsAnywhere returns the units on all nodes that the rules do not exclude.
func (c *call) unitsAnywhere() []*unit {
	list := unitList{unitRules: c.rules(), table: c.Table, now: c.Now}
	for _, r := range c.Table.All() {
		if c.Table.Node(r) != nil { // else its pods are bound to a node that is gone
			list.add(r)
		}
	}
	return list.units
}

// tryAcross replaces best by a better plan in which some of the units go, if permits is true
// for these. It ends with the first row of which no pod must go, or as many as in the best plan.
func (c *call) tryAcross(best *choice, rows []rowNeed, units []*unit, permits func([]*unit) bool) {
	tried := 0
	for _, r := range rows {
		if best.Plan != nil && best.numPDBViolations == 0 && r.victims >= best.victims {
			return
		}
		plan, gone := c.planAcross(r.row, units)
		if plan == nil {
			continue
		}
		_, refusal := c.accept(plan)
		switch tried++; {
		case !permits(gone):
		case refusal != nil:
			if c.spared == nil {
				c.spared = map[table.Row]*decision.Blocker{}
			}
			c.spared[r.row] = refusal
		default:
			best.replaceIfBetter(plan, c.Now)
			if r.victims == 0 {
				return
			}
		}
		if tried == mostAlone {
			return
		}
	}
}

// planAcross returns a plan that places the pod on the row, and the units on any nodes that it
// evicts. It removes units from the least important on, those that violate a budget last, until
// the pod fits, and puts back those that can stay. If pods of gangs are among them it removes all
// at first. The plan is nil if the pod does not fit even if all units go; it may violate a strict
// budget. The table is unchanged afterwards.
func (c *call) planAcross(row table.Row, units []*unit) (plan *Plan, gone []*unit) {
	guarded, others := splitUnits(units, c.Disruption.Budgets)
	mark := c.Table.Checkpoint()
	if taken := c.takeUntilFits(row, slices.Concat(guarded, others)); taken != nil {
		plan = c.pardonFor(row, taken)
		gone = goneOf(taken)
	}
	c.Table.Undo(mark)
	for _, u := range units {
		if u.gone = false; u.gang != nil {
			u.gang.lost = false
		}
	}
	return plan, gone
}

// takeUntilFits takes units off their nodes, the last first, until the pod fits the row. It returns them, twice as many as are needed at most, or nil if the pod does not fit
// without all. Where there are pods of gangs it takes all.
func (c *call) takeUntilFits(row table.Row, units []*unit) []*unit {
	most := 1
	if slices.ContainsFunc(units, func(u *unit) bool { return u.gang != nil }) {
		most = len(units)
	}
	for taken := 0; taken < len(units); most *= 2 {
		from := max(0, len(units)-most)
		for _, u := range units[from : len(units)-taken] {
			u.takeFrom(c.Table)
		}
		taken = len(units) - from
		if c.Filters.Run(row) == nil {
			return units[from:]
		}
	}
	return nil
}

// pardonFor puts back those of the units, all of which are off their nodes, beside which the
// pod fits the row, and returns the plan in which the others go.
func (c *call) pardonFor(row table.Row, units []*unit) *Plan {
	guarded, others := splitUnits(units, c.Disruption.Budgets)
	back := newPardon(c.Table, units, func([]*unit) bool { return c.Filters.Run(row) == nil })
	back.all(guarded, 1)
	back.all(others, 1)
	plan := &Plan{Node: c.Table.Name(row), uid: nodeUID(c.Table, row)}
	plan.addVictims(goneOf(units))
	return plan
}

// rowNeed is a row with a lower bound of how many of its pods must go.
type rowNeed struct {
	row     table.Row
	victims int
}

// rowsByNeed returns the candidate rows, those first of which the fewest pods must go. Equals
// are in the order of their nodes' UIDs.
func rowsByNeed(c *call) (rows []rowNeed) {
	var b criteriaBounds
	for _, r := range appendCandidateRows(nil, c) {
		b.shortfall = c.Filters.Shortfall(r, b.shortfall[:0])
		b.pods = b.pods[:0]
		for _, pl := range c.Table.Pods(r) {
			b.pods = append(b.pods, pl.Pod)
		}
		if least, enough := b.least(c, b.pods, b.shortfall); enough {
			rows = append(rows, rowNeed{r, least})
		}
	}
	slices.SortStableFunc(rows, func(x, y rowNeed) int {
		return cmp.Or(cmp.Compare(x.victims, y.victims),
			byUID(nodeUID(c.Table, x.row), nodeUID(c.Table, y.row), c.Table.Name(x.row), c.Table.Name(y.row)))
	})
	return rows
}

package preempt

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/table"
)

// A pod that its ElasticQuota rejects may find room on a node where no pod has borrowed from its
// queue. Its victims, the pods that have borrowed, are then on other nodes.

// across reports whether to search for victims on any nodes. The pod must be entitled to preempt
// pods of other queues. Besides, plan, the best one with victims on one node, must be nil, or the
// quotas must reject the pod as long as nobody leaves.
func across(c *call, plan *Plan) bool {
	if c.reclaim == nil || !c.entitled {
		return false
	}
	return plan == nil || quota.Of(c.Table).Exceeded(&quota.Ask{Pod: c.Pod, Nominated: c.Nominations.All, UnlistedZero: c.Quotas.UnlistedZero}) != nil
}

// findAcross returns the better of plan, which may be nil, and the best plan that it finds with
// victims on any nodes; nil if there is neither. It tries the rows that need the fewest victims of
// their own. It records in c.spared the rows for which a strict budget refused the plan. It leaves
// the table as it was.
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

// unitsAnywhere returns the units, on all nodes, that the rules of c do not exclude.
func (c *call) unitsAnywhere() []*unit {
	list := unitList{unitRules: c.rules(), table: c.Table, now: c.Now}
	for _, r := range c.Table.All() {
		if c.Table.Node(r) != nil { // else its pods are bound to a node that is gone
			list.add(r)
		}
	}
	return list.units
}

// tryAcross tries one plan for each of rows, which rowsByNeed sorted, and replaces best by each
// that is better. A plan counts if permits is true for its units, and no strict budget refuses it;
// c.spared records the row if one does. It stops after mostAlone plans, after a plan on a row that
// needs no victims of its own, and, if the best plan violates no budget, at a row that needs at
// least as many victims.
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

// planAcross returns a plan that places the pod on the row, and those of the units that go in it.
// It removes units until the pod fits, the least important first, those that violate a budget
// last, and puts back those that can stay. If one is a pod of a gang it removes all units first.
// The plan is nil if the pod does not fit even if all units go. The plan may violate a strict
// budget. The table is unchanged afterwards.
func (c *call) planAcross(row table.Row, units []*unit) (plan *Plan, gone []*unit) {
	guarded, others := splitUnits(units, c.Disruption.Budgets)
	mark := c.Table.Checkpoint()
	if c.takeUntilFits(row, slices.Concat(guarded, others)) {
		plan = c.pardonFor(row, units, guarded, others)
		gone = goneOf(units)
	}
	c.Table.Undo(mark)
	for _, u := range units {
		if u.gone = false; u.gang != nil {
			u.gang.lost = false
		}
	}
	return plan, gone
}

// takeUntilFits takes units off their nodes, the last first, until the pod fits the row: fewer than
// twice as many as are needed. It takes all at once if one is a pod of a gang. It returns false if
// the pod does not fit even without all units, which it leaves off their nodes then.
func (c *call) takeUntilFits(row table.Row, units []*unit) bool {
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
			return true
		}
	}
	return false
}

// pardonFor puts units back on their nodes as long as the pod still fits the row, and returns the
// plan in which the rest go. units are in the order of their importance; guarded are those of them
// that violate a budget, which come back first, and others the rest. Units that are on their nodes
// stay there.
func (c *call) pardonFor(row table.Row, units, guarded, others []*unit) *Plan {
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
	victims int // at least so many of the row's own pods must go; 0: perhaps none
}

// rowsByNeed returns the candidate rows on which the pod would have room if all their pods left,
// whatever their priority. Those come first of which the fewest pods must go. Equals are in the
// order of their nodes' UIDs.
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

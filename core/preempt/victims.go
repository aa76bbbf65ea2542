package preempt

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/index/priorities"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// noVictims is kube-scheduler's reason for a node where no pod has a lower priority.
var noVictims = decision.Blocker{
	Code:    decision.UnschedulableAndUnresolvable,
	Reasons: []string{"No preemption victims found for incoming pod"},
}

// planFor returns a plan for the row, or the reason why there is none: no pod there may go, the pod
// at hand does not fit even without all that may, or a strict budget keeps victims. It leaves the
// table as it was.
func planFor(c *call, row table.Row) (*Plan, *decision.Blocker) {
	if b := c.spared[row]; b != nil {
		return nil, b
	}
	if groupsOn(c.Table, row) {
		return planByUnits(c, row)
	}
	if !c.entitled && priorities.Of(c.Table).Lowest(row) >= c.Pod.Priority {
		return nil, &noVictims
	}
	if b, known := withoutLower(c, row); known && b != nil {
		return nil, b
	}
	pods := lowerPods(c, row)
	if len(pods) == 0 {
		return nil, &noVictims
	}
	if gangsOn(c.Table, row) {
		return planByUnits(c, row)
	}
	return tryRow(c, row, pods)
}

// withoutLower returns why the pod cannot be placed on the row by preemption: it does not
// fit there even without all pods that lowerPods returns, or there are none; nil if it does
// fit. It works without a trial placement; known is false if only a trial can tell. The row must
// have a pod of lower priority, or the pod at hand be entitled.
func withoutLower(c *call, row table.Row) (b *decision.Blocker, known bool) {
	if c.Filters.RunWithoutLower == nil || c.reclaim != nil && c.reclaim.Queued() { // it does not ask quotas
		return nil, false
	}
	kept := keptBack(c, row)
	if len(kept) > 0 && len(lowerPods(c, row)) == 0 {
		return &noVictims, true
	}
	if b, known = c.Filters.RunWithoutLower(row, kept); known && c.Check {
		if tried := fitsWithout(c, row, lowerPods(c, row)); !reflect.DeepEqual(b, tried) {
			panic(fmt.Sprintf("preempt: node %q without lower pods: the filters say %v, a try %v", c.Table.Name(row), b, tried))
		}
	}
	return b, known
}

// fitsWithout tries the pod on the row without the given pods, on the table, which it
// undoes. It returns the blocker, nil if the pod fits.
func fitsWithout(c *call, row table.Row, pods []*object.Pod) *decision.Blocker {
	mark := c.Table.Checkpoint()
	defer c.Table.Undo(mark)
	for _, p := range pods {
		c.Table.RemovePod(p.UID)
	}
	return c.Filters.Run(row)
}

// tryRow makes a plan for the row by a trial on the table, which it undoes. pods are the pods there
// that may go, at least one; it sorts them. It returns the reason if the pod at hand does not fit
// without them, or if a strict budget keeps victims. The plan has no victims if the pod fits as
// the row is.
func tryRow(c *call, row table.Row, pods []*object.Pod) (*Plan, *decision.Blocker) {
	mark := c.Table.Checkpoint()
	defer c.Table.Undo(mark)
	for _, p := range pods {
		c.Table.RemovePod(p.UID)
	}
	if b := c.Filters.Run(row); b != nil {
		return nil, b
	}
	moreImportant := byImportance(c.Now)
	slices.SortFunc(pods, moreImportant)
	guarded, others := splitByPDBViolation(pods, c.Disruption.Budgets)
	victims := reprieve(c, row, guarded)
	violations := len(victims)
	victims = append(victims, reprieve(c, row, others)...)
	slices.SortFunc(victims, moreImportant)
	return c.accept(&Plan{Node: c.Table.Name(row), Victims: victims, NumPDBViolations: violations, uid: nodeUID(c.Table, row)})
}

// reprieve puts each of the pods back on the row, in their order, and removes it again if
// the pod at hand does not fit then. It returns those that were removed, the victims, in
// the same order.
func reprieve(c *call, row table.Row, pods []*object.Pod) []*object.Pod {
	var victims []*object.Pod
	for _, p := range pods {
		c.Table.AddPod(p, c.Table.Name(row))
		if c.Filters.Run(row) != nil {
			c.Table.RemovePod(p.UID)
			victims = append(victims, p)
		}
	}
	return victims
}

// splitByPDBViolation separates the pods whose eviction would violate a budget (guarded)
// from the others, keeping their order.
func splitByPDBViolation(pods []*object.Pod, budgets []*object.Budget) (guarded, others []*object.Pod) {
	used := newBudgetUse(budgets)
	for _, p := range pods {
		if used.charge(p) != nil {
			guarded = append(guarded, p)
		} else {
			others = append(others, p)
		}
	}
	return guarded, others
}

// budgetUse counts, for each budget, the pods that were charged to it.
type budgetUse struct {
	budgets []*object.Budget         // sorted by namespace, then name
	charged map[*object.Budget]int32 // number of pods
}

// newBudgetUse returns a budgetUse with no pod charged yet. budgets must be sorted by
// namespace, then name.
func newBudgetUse(budgets []*object.Budget) budgetUse {
	return budgetUse{budgets, map[*object.Budget]int32{}}
}

// clone returns a copy. What is charged to the copy is not charged to u.
func (u budgetUse) clone() budgetUse { return budgetUse{u.budgets, maps.Clone(u.charged)} }

// charge charges the pod to the budgets that cover it, in their order, up to the first that
// it violates, and returns that one; nil for none. A pod stays charged if it is not evicted
// in the end (kube-scheduler's FilterVictimsWithPDBViolation).
func (u budgetUse) charge(p *object.Pod) *object.Budget {
	for _, b := range budgetsOf(p.Namespace, u.budgets) {
		if b.Counts(p) {
			if u.charged[b]++; u.charged[b] > b.Allowed {
				return b
			}
		}
	}
	return nil
}

// budgetsOf returns the budgets of the namespace, a part of budgets, which are sorted by
// namespace.
func budgetsOf(namespace string, budgets []*object.Budget) []*object.Budget {
	compare := func(b *object.Budget, ns string) int { return cmp.Compare(b.Namespace, ns) }
	from, found := slices.BinarySearchFunc(budgets, namespace, compare)
	if !found {
		return nil
	}
	to := from
	for to < len(budgets) && budgets[to].Namespace == namespace {
		to++
	}
	return budgets[from:to]
}

// byImportance returns a comparison that sorts the most important pods first: by descending
// priority, then those that started earlier. The UID makes the order total, where kube-scheduler's
// is left open.
func byImportance(now time.Time) func(a, b *object.Pod) int {
	return func(a, b *object.Pod) int {
		return cmp.Or(
			cmp.Compare(b.Priority, a.Priority),
			started(a, now).Compare(started(b, now)),
			cmp.Compare(a.UID, b.UID),
		)
	}
}

// started returns the pod's start time; now if it has not started.
func started(p *object.Pod, now time.Time) time.Time { return begun(p.Started, now) }

// begun returns start, or now if start is zero: a pod that has not started counts as
// starting now where start times are compared.
func begun(start, now time.Time) time.Time {
	if start.IsZero() {
		return now
	}
	return start
}

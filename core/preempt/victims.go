package preempt

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/index/priorities"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// noVictims is v1.36's reason on a node where nobody has lower priority.
var noVictims = decision.Blocker{
	Code:    decision.UnschedulableAndUnresolvable,
	Reasons: []string{"No preemption victims found for incoming pod"},
}

// planFor returns a plan for one node, or the reason why the pod does not fit there
// without all pods of lower priority. It leaves the table as it was.
func planFor(c *framework.PostFilterCall, row table.Row) (*Plan, *decision.Blocker) {
	if priorities.Of(c.Table).Lowest(row) >= c.Pod.Priority {
		return nil, &noVictims
	}
	if b, known := withoutLower(c, row); known && b != nil {
		return nil, b
	}
	return tryRow(c, row, lowerPods(c, row))
}

// withoutLower returns the blocker of the row without its pods of lower priority, nil if
// the pod fits. It returns false if only a trial can tell.
func withoutLower(c *framework.PostFilterCall, row table.Row) (b *decision.Blocker, known bool) {
	if c.Filters.RunWithoutLower == nil {
		return nil, false
	}
	if b, known = c.Filters.RunWithoutLower(row); known && c.Check {
		if tried := fitsWithout(c, row, lowerPods(c, row)); !reflect.DeepEqual(b, tried) {
			panic(fmt.Sprintf("preempt: node %q without lower pods: the filters say %v, a try %v", c.Table.Name(row), b, tried))
		}
	}
	return b, known
}

// fitsWithout tries the pod on the row without the pods. It returns the blocker, nil if
// the pod fits, and leaves the table as it was.
func fitsWithout(c *framework.PostFilterCall, row table.Row, pods []*object.Pod) *decision.Blocker {
	mark := c.Table.Checkpoint()
	defer c.Table.Undo(mark)
	for _, p := range pods {
		c.Table.RemovePod(p.UID)
	}
	return c.Filters.Run(row)
}

// tryRow makes a plan for the row by a trial on the table, which it undoes. pods are the
// pods of lower priority there, at least one; it sorts them. It returns the blocker if
// the pod does not fit without them.
func tryRow(c *framework.PostFilterCall, row table.Row, pods []*object.Pod) (*Plan, *decision.Blocker) {
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
	return &Plan{Node: c.Table.Name(row), Victims: victims, NumPDBViolations: violations, uid: nodeUID(c.Table, row)}, nil
}

func lowerPods(c *framework.PostFilterCall, row table.Row) []*object.Pod {
	return appendLowerPods(nil, c, row)
}

func appendLowerPods(pods []*object.Pod, c *framework.PostFilterCall, row table.Row) []*object.Pod {
	for pl := range c.Table.Lower(row, c.Pod.Priority) {
		pods = append(pods, pl.Pod)
	}
	return pods
}

// reprieve puts the pods back one after the other, and returns those that do not fit
// together with the pod.
func reprieve(c *framework.PostFilterCall, row table.Row, pods []*object.Pod) []*object.Pod {
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
// from the others, keeping their order. Every pod counts against every budget that covers
// it, in the order given, whether it is evicted in the end or not (v1.36,
// filterPodsWithPDBViolation).
func splitByPDBViolation(pods []*object.Pod, budgets []*object.Budget) (guarded, others []*object.Pod) {
	spent := map[*object.Budget]int32{}
	for _, p := range pods {
		overdrawn := false
		for _, b := range budgetsOf(p.Namespace, budgets) {
			if b.Counts(p) {
				spent[b]++
				overdrawn = overdrawn || spent[b] > b.Allowed
			}
		}
		if overdrawn {
			guarded = append(guarded, p)
		} else {
			others = append(others, p)
		}
	}
	return guarded, others
}

// budgetsOf returns the budgets of the namespace; budgets are sorted by it.
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

// byImportance returns a comparison by priority, then by how long the pod has run; the
// UID makes the order total, where v1.36's is left open.
func byImportance(now time.Time) func(a, b *object.Pod) int {
	return func(a, b *object.Pod) int {
		return cmp.Or(
			cmp.Compare(b.Priority, a.Priority),
			started(a, now).Compare(started(b, now)),
			cmp.Compare(a.UID, b.UID),
		)
	}
}

// started returns when the pod was started; one that was not yet counts as
// starting now.
func started(p *object.Pod, now time.Time) time.Time { return begun(p.Started, now) }

func begun(start, now time.Time) time.Time {
	if start.IsZero() {
		return now
	}
	return start
}

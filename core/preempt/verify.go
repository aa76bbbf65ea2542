package preempt

import (
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
)

// verify tries every candidate row afresh, and panics if the best plan that it finds is not best,
// or if only one of the two is nil. If limits let the search stop early, best may be another plan.
func verify(c *call, best *Plan, limits Limits) {
	var all choice
	plans := 0
	for _, row := range appendCandidateRows(nil, c) {
		lower := lowerPods(c, row)
		if len(lower) == 0 {
			continue
		}
		if p, blocker := tryRow(c, row, lower); blocker == nil && len(p.Victims) > 0 {
			all.replaceIfBetter(p, c.Now)
			plans++
		}
	}
	switch {
	case (best == nil) != (all.Plan == nil):
		panic(fmt.Sprintf("preempt: %d nodes have a plan, and the best of them is %v", plans, best))
	case best == nil || !c.Filters.Local && plans > limits.of(c.Table.Live()):
	case best.Node != all.Node || !slices.Equal(best.Victims, all.Victims) || best.NumPDBViolations != all.NumPDBViolations:
		panic(fmt.Sprintf("preempt: node %q was found, %q is better", best.Node, all.Node))
	}
}

// verifyRefused tries every candidate row afresh, and panics if the reasons differ from said, or if
// err is nil though a filter fails, or not nil though none fails.
func verifyRefused(c *call, said []decision.Tally, err error) {
	var tried tallies
	fails := false
	rows := appendCandidateRows(nil, c)
	for _, row := range rows {
		blocker := &noVictims
		if lower := lowerPods(c, row); len(lower) > 0 {
			_, blocker = tryRow(c, row, lower)
		}
		if fails = fails || blocker == nil || blocker.Code == decision.Error; !fails {
			tried.add(blocker, 1)
		}
	}
	tried.add(&notHelpful, c.Table.Live()-len(rows))
	if fails != (err != nil) || !fails && !slices.Equal(inOrder(tried), inOrder(said)) {
		panic(fmt.Sprintf("preempt: refusals %v and error %v; by tries %v, some node fails: %t", said, err, tried, fails))
	}
}

// inOrder returns the tallies as sorted lines, to be compared.
func inOrder(tallies []decision.Tally) (lines []string) {
	for _, t := range tallies {
		lines = append(lines, fmt.Sprint(t.Plugin, t.Reasons, t.Nodes))
	}
	slices.Sort(lines)
	return lines
}

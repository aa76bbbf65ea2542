package preempt

import (
	"container/heap"
	"fmt"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/table"
)

// mostAlone is how many rows may be refused one by one. If the best of so many have no plan
// it is likely that none has: then the filters are asked about all rows in the heap at
// once. tryAcross stops after as many plans.
const mostAlone = 16

// dryRun is the result of a dry run on a row: a plan, or the reason for none.
type dryRun struct {
	row     table.Row
	plan    *Plan             // nil: none; without victims if filters contradict themselves
	refusal *decision.Blocker // why there is no plan; nil: there is one, or the row is no candidate
}

// find returns the best plan for the pod, or else the reasons why there is none, over all
// nodes. An error means that a filter failed, or that filters contradict themselves.
func (k *ranks) find(c *call, limits Limits) (best *Plan, refused []decision.Tally, err error) {
	k.refresh(c)
	best = k.best(c, limits)
	if c.Check {
		verify(c, best, limits)
	}
	if best == nil {
		refused, err = k.refused(c)
		if c.Check {
			verifyRefused(c, refused, err)
		}
	} else {
		best.NominationsToClear = nominationsToClear(c, best.Node)
	}
	k.keepTries(c)
	k.revision = c.Table.Revision()
	return best, refused, err
}

// best makes plans for rows, the most promising first, until no other row can have a better
// one, and returns the best; nil if there is none. If filters look beyond the node, so that
// nothing is kept, it also stops when there are enough plans.
func (k *ranks) best(c *call, limits Limits) *Plan {
	var best choice
	found, clean, enough, refused := 0, 0, limits.of(c.Table.Live()), 0
	for len(k.heap) > 0 {
		row := k.heap[0]
		r := &k.rows[row]
		if !best.beatenBy(&r.criteria, r.uid, r.node, c.Now) || !c.Filters.Local && clean > 0 && found >= enough {
			break
		}
		if r.outlook != open && isCandidate(c, row) {
			if refused += k.advance(c, row); refused == mostAlone {
				k.askAll(c)
				refused++
			}
			continue
		}
		heap.Pop(k)
		try := dryRun{row: row}
		if isCandidate(c, row) {
			try.plan, try.refusal = planFor(c, row)
		}
		k.tries = append(k.tries, try)
		if try.plan == nil || len(try.plan.Victims) == 0 {
			continue
		}
		best.replaceIfBetter(try.plan, c.Now)
		if found++; try.plan.NumPDBViolations == 0 {
			clean++
		}
	}
	return best.Plan
}

// advance computes the next, dearer estimate for the first row in the heap, and moves the
// row down or removes it. It returns 1 if the filters reject it even without its pods of
// lower priority, else 0.
func (k *ranks) advance(c *call, row table.Row) (refused int) {
	r := &k.rows[row]
	if r.outlook == promising {
		k.ask(c, row)
	}
	if r.refusal != nil {
		heap.Pop(k)
		return 1
	}
	if k.workOut(c, row); r.outlook == open {
		heap.Fix(k, 0)
	} else {
		heap.Pop(k)
	}
	return 0
}

// askAll asks the filters about each promising candidate in the heap without its pods of
// lower priority, and removes those that they reject.
func (k *ranks) askAll(c *call) {
	for _, row := range k.heap {
		if k.rows[row].outlook == promising && isCandidate(c, row) {
			k.ask(c, row)
		}
	}
	k.order()
}

// keepTries puts the rows that were tried for this pod back into the heap, for the next
// pod of the class. The results of trials are kept as ranks if they hold for that pod,
// too: filters look at the node alone, and none failed, as failures name the pod at hand.
func (k *ranks) keepTries(c *call) {
	for _, t := range k.tries {
		r := &k.rows[t.row]
		keeps := c.Filters.Local && (t.refusal == nil || t.refusal.Code != decision.Error)
		switch {
		case keeps && t.refusal != nil:
			r.refusal = t.refusal
			k.takeOut(t.row)
		case keeps && t.plan != nil && len(t.plan.Victims) > 0:
			r.criteria = t.plan.criteria()
		case r.refusal != nil: // it was not worked out any further
			k.rank(c, t.row)
		}
		k.putIn(t.row)
	}
}

// refused returns the reasons why there is no plan, over all nodes, or an error if a filter
// failed. It tries rows that were not tried.
func (k *ranks) refused(c *call) ([]decision.Tally, error) {
	tried := map[table.Row]dryRun{}
	for _, t := range k.tries {
		tried[t.row] = t
	}
	var refused tallies
	var errs []error
	alone, rows := 0, k.candidateRows(c)
	for _, row := range rows {
		if k.rows[row].outlook == nobody {
			alone++
		}
	}
	refused.add(&noVictims, alone)
	for _, row := range rows {
		if k.rows[row].outlook == nobody {
			continue
		}
		blocker := k.rows[row].refusal
		if blocker == nil {
			t, known := tried[row]
			if !known {
				t.row = row
				t.plan, t.refusal = planFor(c, row)
				k.tries = append(k.tries, t)
			}
			blocker = t.refusal
		}
		switch {
		case blocker == nil:
			errs = append(errs, NoVictim(k.rows[row].node))
			continue
		case blocker.Code == decision.Error:
			errs = append(errs, blocker.Failure())
			continue
		}
		refused.add(blocker, 1)
	}
	if len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	refused.add(&notHelpful, c.Table.Live()-len(rows))
	return refused, nil
}

// NoVictim returns kube-scheduler's error for a node on which the pod fits though the filters
// rejected it before.
func NoVictim(node string) error {
	return fmt.Errorf("expected at least one victim pod on node %q", node)
}

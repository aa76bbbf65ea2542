package preempt

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Plan is a node and who has to go from it.
type Plan struct {
	Node string
	// Victims is never empty: the most important first.
	Victims []*object.Pod
	// Violations is how many victims a disruption budget protects.
	Violations int
	// Outranked are the pods nominated to the node that lose it, having lower
	// priority than the one that takes it.
	Outranked []*object.Pod

	weight int64     // the sum of the victims' priorities, each moved up to 0 or more
	since  time.Time // the earliest start of a victim of the highest priority
}

func newPlan(node string, victims []*object.Pod, violations int, now time.Time) *Plan {
	p := &Plan{Node: node, Victims: victims, Violations: violations}
	for _, v := range victims {
		p.weight += int64(v.Priority) + 1<<31
	}
	if len(victims) > 0 {
		p.since = started(victims[0], now) // the first by importance
	}
	return p
}

// compare is negative when p is the better plan: fewer violations, a lower
// highest priority, a lower sum of priorities, fewer victims, a later start of
// the most important ones (v1.36, pickOneNodeForPreemption); else the node's
// name decides, where v1.36 leaves it to chance.
func (p *Plan) compare(o *Plan) int {
	return cmp.Or(
		cmp.Compare(p.Violations, o.Violations),
		cmp.Compare(p.Victims[0].Priority, o.Victims[0].Priority),
		cmp.Compare(p.weight, o.weight),
		cmp.Compare(len(p.Victims), len(o.Victims)),
		o.since.Compare(p.since),
		cmp.Compare(p.Node, o.Node),
	)
}

// Limits say how many candidates are enough: a percentage of the nodes where
// preemption may help, but at least an absolute number.
type Limits struct{ Percentage, Absolute int }

func (l Limits) of(nodes int) int { return min(nodes, max(nodes*l.Percentage/100, l.Absolute)) }

// Find looks for the best plan among the nodes that the filters rejected as
// Unschedulable, from a drawn one on, until there are enough candidates and
// one of them violates no budget. Without a plan the tallies say why not, over
// all nodes. An error means that filters contradict themselves, and comes
// without either.
func Find(c *framework.PostFilterCall, limits Limits) (*Plan, []decision.Tally, error) {
	var best *Plan
	refused, err := search(c, limits, func(p *Plan) {
		if best == nil || p.compare(best) < 0 {
			best = p
		}
	})
	if best != nil {
		best.Outranked = outranked(c, best.Node)
	}
	return best, refused, err
}

// Candidates is Find without the choice: all plans that it would compare.
func Candidates(c *framework.PostFilterCall, limits Limits) ([]framework.Candidate, []decision.Tally, error) {
	var found []framework.Candidate
	refused, err := search(c, limits, func(p *Plan) {
		found = append(found, framework.Candidate{Node: p.Node, Victims: p.Victims, Violations: p.Violations})
	})
	return found, refused, err
}

// Best is the best of some candidates, nil when there is none.
func Best(c *framework.PostFilterCall, candidates []framework.Candidate) *Plan {
	var best *Plan
	for _, o := range candidates {
		victims := slices.SortedFunc(slices.Values(o.Victims), byImportance(c.Now))
		if p := newPlan(o.Node, victims, o.Violations, c.Now); best == nil || p.compare(best) < 0 {
			best = p
		}
	}
	if best != nil {
		best.Outranked = outranked(c, best.Node)
	}
	return best
}

// search calls take with every plan that it finds, until they are enough. The
// tallies say why there is none.
func search(c *framework.PostFilterCall, limits Limits, take func(*Plan)) ([]decision.Tally, error) {
	rows := candidates(c)
	var refused tallies
	var errs []error
	enough, found, clean := limits.of(len(rows)), 0, 0
	first := c.Draw(len(rows))
	for i := range rows {
		row := rows[(first+i)%len(rows)]
		plan, blocker := onNode(c, row)
		switch {
		case blocker != nil:
			refused.add(blocker, 1)
			continue
		case len(plan.Victims) == 0:
			errs = append(errs, fmt.Errorf("expected at least one victim pod on node %q", plan.Node))
			continue
		}
		take(plan)
		if found++; plan.Violations == 0 {
			clean++
		}
		if clean > 0 && found >= enough {
			break
		}
	}
	if found > 0 {
		return nil, nil
	}
	if len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	refused.add(&notHelpful, c.Table.Live()-len(rows))
	return refused, nil
}

// notHelpful is v1.36's reason on a node that no victim's going would open.
var notHelpful = decision.Blocker{
	Code:    decision.Unresolvable,
	Reasons: []string{"Preemption is not helpful for scheduling"},
}

// candidates lists the rows where removing pods may help.
func candidates(c *framework.PostFilterCall) []table.Row {
	var rows []table.Row
	for r := range c.Table.Rows() {
		row := table.Row(r)
		if c.Table.Node(row) != nil && c.Code(row) == decision.Unschedulable {
			rows = append(rows, row)
		}
	}
	return rows
}

// tallies counts nodes by what blocks them.
type tallies []decision.Tally

func (t *tallies) add(b *decision.Blocker, nodes int) {
	if nodes == 0 {
		return
	}
	for i := range *t {
		if known := &(*t)[i]; known.Plugin == b.Plugin && slices.Equal(known.Reasons, b.Reasons) {
			known.Nodes += nodes
			return
		}
	}
	*t = append(*t, decision.Tally{Blocker: *b, Nodes: nodes})
}

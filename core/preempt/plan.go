package preempt

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/index/priorities"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Plan is a node with the pods to evict from it.
type Plan struct {
	Node string
	// Victims are the most important first. There are some in each plan that is carried
	// out.
	Victims []*object.Pod
	// NumPDBViolations is how many victims a disruption budget protects.
	NumPDBViolations int
	// NominationsToClear are the pods nominated to the node that lose it, having lower
	// priority than the one that takes it.
	NominationsToClear []*object.Pod

	uid types.UID // of the node
}

// criteria is what plans are compared by, in this order (v1.36,
// pickOneNodeForPreemption).
type criteria struct {
	numPDBViolations int
	highest          int32     // the highest priority of a victim
	weight           int64     // the sum of the victims' priorities, each moved up to 0 or more
	victims          int       // how many
	since            time.Time // the earliest start of a victim of the highest priority; zero: not started
}

func (p *Plan) criteria() criteria {
	c := criteria{numPDBViolations: p.NumPDBViolations, victims: len(p.Victims)}
	for _, v := range p.Victims {
		c.weight += weight(v.Priority)
	}
	if len(p.Victims) > 0 { // the first by importance
		c.highest, c.since = p.Victims[0].Priority, p.Victims[0].Started
	}
	return c
}

func weight(priority int32) int64 { return int64(priority) + 1<<31 }

// compare is negative if c is better: fewer violations, a lower highest priority, a lower
// sum of priorities, fewer victims, a later start of the most important ones. A pod that
// has not started counts as starting now.
func (c *criteria) compare(o *criteria, now time.Time) int {
	switch {
	case c.numPDBViolations != o.numPDBViolations:
		return cmp.Compare(c.numPDBViolations, o.numPDBViolations)
	case c.highest != o.highest:
		return cmp.Compare(c.highest, o.highest)
	case c.weight != o.weight:
		return cmp.Compare(c.weight, o.weight)
	case c.victims != o.victims:
		return cmp.Compare(c.victims, o.victims)
	}
	return begun(o.since, now).Compare(begun(c.since, now))
}

// choice is a plan on its way to be the best.
type choice struct {
	*Plan
	criteria
}

// beatenBy reports whether a plan with these criteria on the node is better than the
// choice. Between equals the lower node UID wins, where v1.36 leaves it to chance.
func (best *choice) beatenBy(c *criteria, uid types.UID, node string, now time.Time) bool {
	if best.Plan == nil {
		return true
	}
	order := c.compare(&best.criteria, now)
	return order < 0 || order == 0 && byUID(uid, best.uid, node, best.Node) < 0
}

// byUID orders equals: by UID, as names may be replaced in a record, which then has
// the same decisions; by name where there are no UIDs.
func byUID(a, b types.UID, nameOfA, nameOfB string) int {
	return cmp.Or(cmp.Compare(a, b), cmp.Compare(nameOfA, nameOfB))
}

// nodeUID returns the UID of the row's node.
func nodeUID(t *table.Table, row table.Row) types.UID {
	if n := t.Node(row); n != nil {
		return n.UID
	}
	return ""
}

func (best *choice) take(p *Plan, now time.Time) {
	if c := p.criteria(); best.beatenBy(&c, p.uid, p.Node, now) {
		best.Plan, best.criteria = p, c
	}
}

// Limits holds how many candidates are enough: a percentage of the nodes where preemption
// may help, but at least an absolute number.
type Limits struct{ Percentage, Absolute int }

func (l Limits) of(nodes int) int { return min(nodes, max(nodes*l.Percentage/100, l.Absolute)) }

// Finder finds plans. It keeps the buffers of a search for the next. The zero value is
// ready to use, by one caller at a time.
type Finder struct{ once ranks }

// spareRows bounds the rows that a finder keeps buffers for between two pods: about 110
// bytes a row.
const spareRows = 1 << 16

// ranksOf returns the ranks that are kept for the pod's class. Where none are kept they
// are made for this search alone.
func (f *Finder) ranksOf(c *framework.PostFilterCall) *ranks {
	if c.Cache != nil {
		if k, known := (*c.Cache).(*ranks); known && k.priority == c.Pod.Priority {
			return k
		}
		k := &ranks{priority: c.Pod.Priority}
		*c.Cache = k
		return k
	}
	if k := &f.once; len(k.rows) > spareRows {
		*k = ranks{}
	}
	f.once.priority, f.once.revision = c.Pod.Priority, 0
	return &f.once
}

// whyNoVictims returns why there is no plan where no node is a candidate, or no pod on any
// node has a lower priority.
func whyNoVictims(c *framework.PostFilterCall) []decision.Tally {
	var refused tallies
	nodes := c.Filters.Unschedulable()
	refused.add(&noVictims, nodes)
	refused.add(&notHelpful, c.Table.Live()-nodes)
	return refused
}

// Find returns the best plan among the nodes that the filters rejected as Unschedulable.
// It tries nodes in the order of what sums over their pods promise, and stops when no
// other can be better. For a pod whose filters look beyond the node it also stops when
// there are enough candidates, one of which violates no budget. Without a plan it returns
// the reasons, over all nodes. An error means that a filter failed, or that filters
// contradict themselves.
func (f *Finder) Find(c *framework.PostFilterCall, limits Limits) (*Plan, []decision.Tally, error) {
	if c.Filters.Rows != nil { // to try a few costs less than to rank all
		return findAmong(c)
	}
	if priorities.Of(c.Table).LowestOfAll() >= c.Pod.Priority || c.Filters.Unschedulable() == 0 {
		refused := whyNoVictims(c)
		if c.Check {
			verifyNoVictims(c, limits, refused)
		}
		return nil, refused, nil
	}
	return f.ranksOf(c).find(c, limits)
}

// verifyNoVictims searches every node, and panics if the result differs from
// whyNoVictims'.
func verifyNoVictims(c *framework.PostFilterCall, limits Limits, said []decision.Tally) {
	best, found, err := (&ranks{priority: c.Pod.Priority}).find(c, limits)
	if best != nil || err != nil || !reflect.DeepEqual(found, said) {
		panic(fmt.Sprintf("preempt: no pod can be preempted, but a search finds plan %v, tallies %v, error %v; expected tallies %v", best, found, err, said))
	}
}

func findAmong(c *framework.PostFilterCall) (*Plan, []decision.Tally, error) {
	var best choice
	refused, err := search(c, Limits{Percentage: 100}, func(p *Plan) { best.take(p, c.Now) })
	if best.Plan != nil {
		best.NominationsToClear = nominationsToClear(c, best.Node)
	}
	return best.Plan, refused, err
}

// Candidates returns plans for nodes, from a random one on, until there are enough and
// one of them violates no budget. Without any it returns the reasons, over all nodes.
func Candidates(c *framework.PostFilterCall, limits Limits) ([]framework.Candidate, []decision.Tally, error) {
	var found []framework.Candidate
	refused, err := search(c, limits, func(p *Plan) {
		found = append(found, framework.Candidate{Node: p.Node, Victims: p.Victims, NumPDBViolations: p.NumPDBViolations})
	})
	return found, refused, err
}

// Left returns the candidates on whose node the pod still fits when all pods of lower
// priority go. While extenders looked at them others may have been nominated there,
// or placed.
func Left(c *framework.PostFilterCall, candidates []framework.Candidate) []framework.Candidate {
	return slices.DeleteFunc(slices.Clone(candidates), func(o framework.Candidate) bool {
		row, known := c.Table.Find(o.Node)
		return !known || fitsWithout(c, row, lowerPods(c, row)) != nil
	})
}

// Best returns the best of some candidates, nil when there is none.
func Best(c *framework.PostFilterCall, candidates []framework.Candidate) *Plan {
	var best choice
	for _, o := range candidates {
		victims := slices.SortedFunc(slices.Values(o.Victims), byImportance(c.Now))
		p := &Plan{Node: o.Node, Victims: victims, NumPDBViolations: o.NumPDBViolations}
		if row, known := c.Table.Find(o.Node); known {
			p.uid = nodeUID(c.Table, row)
		}
		best.take(p, c.Now)
	}
	if best.Plan != nil {
		best.NominationsToClear = nominationsToClear(c, best.Node)
	}
	return best.Plan
}

// search calls take with every plan that it finds, until they are enough. The
// tallies say why there is none.
func search(c *framework.PostFilterCall, limits Limits, take func(*Plan)) ([]decision.Tally, error) {
	rows := appendCandidateRows(nil, c)
	var refused tallies
	var errs []error
	enough, found, clean := limits.of(len(rows)), 0, 0
	first := c.Draw(len(rows))
	for i := range rows {
		row := rows[(first+i)%len(rows)]
		plan, blocker := planFor(c, row)
		switch {
		case blocker != nil && blocker.Code == decision.Error:
			errs = append(errs, blocker.Failure())
			continue
		case blocker != nil:
			refused.add(blocker, 1)
			continue
		case len(plan.Victims) == 0:
			errs = append(errs, noVictim(plan.Node))
			continue
		}
		take(plan)
		if found++; plan.NumPDBViolations == 0 {
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
	Code:    decision.UnschedulableAndUnresolvable,
	Reasons: []string{"Preemption is not helpful for scheduling"},
}

// appendCandidateRows appends the rows where removing pods may help.
func appendCandidateRows(rows []table.Row, c *framework.PostFilterCall) []table.Row {
	among := c.Filters.Rows
	switch {
	case among != nil:
	case c.Filters.AppendUnschedulable != nil:
		return c.Filters.AppendUnschedulable(rows)
	default:
		among = c.Table.All()
	}
	for _, row := range among {
		if isCandidate(c, row) {
			rows = append(rows, row)
		}
	}
	return rows
}

func isCandidate(c *framework.PostFilterCall, row table.Row) bool {
	return c.Table.Node(row) != nil && c.Filters.Code(row) == decision.Unschedulable
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

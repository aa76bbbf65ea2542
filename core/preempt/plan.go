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

// Plan is a node for a pod, and the pods to evict so that it fits there. They are on that node,
// except pods of groups, and pods whose queue gives back what it borrowed.
type Plan struct {
	Node string
	// Victims are sorted, the most important first. A plan that is carried out has some.
	Victims []*object.Pod
	// NumPDBViolations is the number of victims whose eviction violates a
	// PodDisruptionBudget.
	NumPDBViolations int
	// NominationsToClear are the pods of lower priority whose nomination to the node ends.
	NominationsToClear []*object.Pod

	uid     types.UID // of the node
	surplus int       // how many victims are pods that their gang has beyond its minimum
}

// criteria is what plans are compared by, in the order of the fields (kube-scheduler,
// pickOneNodeForPreemption, which has no surplus). Less is better, except for surplus and since.
type criteria struct {
	numPDBViolations int
	highest          int32     // the highest priority of a victim
	weight           int64     // the sum of the victims' priorities, each moved up to 0 or more
	victims          int       // number of victims
	surplus          int       // victims that their gang has beyond its minimum; more is better
	since            time.Time // the earliest start of a victim of the highest priority; zero: not started
}

// criteria returns the plan's criteria. The first victim must have the highest priority.
func (p *Plan) criteria() criteria {
	c := criteria{numPDBViolations: p.NumPDBViolations, victims: len(p.Victims), surplus: p.surplus}
	for _, v := range p.Victims {
		c.weight += weight(v.Priority)
	}
	for i, v := range p.Victims { // the most important first
		switch {
		case i == 0:
			c.highest, c.since = v.Priority, v.Started
		case v.Priority == c.highest && !v.Started.IsZero() && (c.since.IsZero() || v.Started.Before(c.since)):
			c.since = v.Started // a unit that comes later started before
		}
	}
	return c
}

// weight returns the priority plus 2^31, which is not negative, so that sums grow with each
// victim.
func weight(priority int32) int64 { return int64(priority) + 1<<31 }

// compare returns a negative number if c is better than o, 0 if they are equal. Better are, in
// this order: fewer violations, a lower highest priority, a lower weight, fewer victims, more
// surplus, a later since. A pod that has not started counts as starting now.
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
	case c.surplus != o.surplus:
		return cmp.Compare(o.surplus, c.surplus)
	}
	return begun(o.since, now).Compare(begun(c.since, now))
}

// choice is the best plan so far, with its criteria; a nil Plan means none.
type choice struct {
	*Plan
	criteria
}

// beatenBy reports whether a plan with criteria c on the node is better than the choice.
// Between equals the lower node UID wins, where kube-scheduler leaves it to chance.
func (best *choice) beatenBy(c *criteria, uid types.UID, node string, now time.Time) bool {
	if best.Plan == nil {
		return true
	}
	order := c.compare(&best.criteria, now)
	return order < 0 || order == 0 && byUID(uid, best.uid, node, best.Node) < 0
}

// byUID compares nodes by UID, or by name if there are no UIDs. UIDs come first because a
// record may have names replaced and must still give the same decisions.
func byUID(a, b types.UID, nameOfA, nameOfB string) int {
	return cmp.Or(cmp.Compare(a, b), cmp.Compare(nameOfA, nameOfB))
}

// nodeUID returns the UID of the row's node, "" if there is no node.
func nodeUID(t *table.Table, row table.Row) types.UID {
	if n := t.Node(row); n != nil {
		return n.UID
	}
	return ""
}

// replaceIfBetter makes p the choice if there is none yet, or if p is better by kube-scheduler's
// criteria. Equals are ordered by node UID. A victim that has not started counts as started at
// now.
func (best *choice) replaceIfBetter(p *Plan, now time.Time) {
	if c := p.criteria(); best.beatenBy(&c, p.uid, p.Node, now) {
		best.Plan, best.criteria = p, c
	}
}

// Limits is the number of candidates after which a search may stop: a percentage of the
// nodes where preemption may help, but at least an absolute number (as
// minCandidateNodesPercentage and minCandidateNodesAbsolute of DefaultPreemption).
type Limits struct{ Percentage, Absolute int }

// of returns how many candidate nodes with a plan are enough, among that many nodes.
func (l Limits) of(nodes int) int { return min(nodes, max(nodes*l.Percentage/100, l.Absolute)) }

// Finder finds plans and keeps the memory of a search for the next. The zero value is ready
// to use, by one caller at a time.
type Finder struct {
	once ranks // for pods whose class keeps none; only its memory is reused
}

// spareRows is the most rows for which once keeps its memory between two pods: about 110
// bytes a row.
const spareRows = 1 << 16

// ranksOf returns the ranks that are kept with the pod's class. If there are none, or they are for
// another priority, revision of the quotas or strictness, it keeps new ones. If nothing is kept
// for the class (c.Cache is nil), it returns empty ranks for this search alone.
func (f *Finder) ranksOf(c *call) *ranks {
	if c.Cache != nil {
		if k, known := (*c.Cache).(*ranks); known && k.priority == c.Pod.Priority && k.quotas == c.quotas() && k.strict == c.Disruption.Strict {
			return k
		}
		k := &ranks{priority: c.Pod.Priority, quotas: c.quotas(), strict: c.Disruption.Strict}
		*c.Cache = k
		return k
	}
	if k := &f.once; len(k.rows) > spareRows {
		*k = ranks{}
	}
	f.once.priority, f.once.revision = c.Pod.Priority, 0
	return &f.once
}

// whyNoVictims returns the tallies for a pod that no node can take by preemption because no
// node is a candidate, or no pod on any node has a lower priority.
func whyNoVictims(c *call) []decision.Tally {
	var refused tallies
	nodes := c.Filters.Unschedulable()
	refused.add(&noVictims, nodes)
	refused.add(&notHelpful, c.Table.Live()-nodes)
	return refused
}

// Find returns the best plan for the pod, by trials on the table, which it leaves as it was. Its
// node is one that the filters rejected as Unschedulable. All such nodes count, but if the pod's
// filters look beyond the node, or a pod of Kubernetes' own groups is placed, the search stops once
// limits has enough candidates and one violates no budget. If there is no plan Find returns nil
// and the reasons, over all nodes. An error means that a filter failed, or that filters
// contradict themselves.
func (f *Finder) Find(of *framework.PostFilterCall, limits Limits) (*Plan, []decision.Tally, error) {
	c := newCall(of)
	if byUnits(c.Table) && c.reclaim == nil {
		return findAmong(c, limits)
	}
	if c.Filters.Rows != nil || c.entitled || byUnits(c.Table) {
		// To try a few rows costs less than to rank all, and what an entitled pod may preempt
		// on a row depends on the pods of other rows.
		plan, refused, err := findAmong(c, Limits{Percentage: 100})
		if err == nil && across(c, plan) {
			if plan = findAcross(c, plan); plan == nil && len(c.spared) > 0 {
				_, refused, err = findAmong(c, limits) // now with the budgets' reasons
			}
		}
		return plan, refused, err
	}
	if priorities.Of(c.Table).LowestOfAll() >= c.Pod.Priority || c.Filters.Unschedulable() == 0 {
		refused := whyNoVictims(c)
		if c.Check {
			verifyNoVictims(c, limits, refused)
		}
		return nil, refused, nil
	}
	if c.reclaim != nil && c.reclaim.Queued() || c.Table.Groups().AnyOthersPlaced() {
		// The quota's verdict depends on other rows, and so does who may go of a gang.
		return findAmong(c, Limits{Percentage: 100})
	}
	return f.ranksOf(c).find(c, limits)
}

// verifyNoVictims searches every node, and panics if there is a plan or an error, or if the reasons
// differ from said, which whyNoVictims returned.
func verifyNoVictims(c *call, limits Limits, said []decision.Tally) {
	best, found, err := (&ranks{priority: c.Pod.Priority}).find(c, limits)
	if best != nil || err != nil || !reflect.DeepEqual(found, said) {
		panic(fmt.Sprintf("preempt: no pod can be preempted, but a search finds plan %v, tallies %v, error %v; expected tallies %v", best, found, err, said))
	}
}

// findAmong returns the best plan by a trial on each candidate row, without ranks, until
// there are enough. It is used for pods that are narrowed to a few nodes, for units, and if
// there are ElasticQuotas. It leaves out rows that cannot have a better plan than those before,
// except those with units, whose pods are on several nodes.
func findAmong(c *call, limits Limits) (*Plan, []decision.Tally, error) {
	var best choice
	var bounds criteriaBounds
	refused, err := search(c, limits, func(row table.Row) bool {
		gangs := gangsOn(c.Table, row)
		if best.Plan == nil || groupsOn(c.Table, row) || gangs && c.entitled {
			return true
		}
		beaten := func(found criteria, known bool) bool {
			if gangs {
				found.surplus = found.victims
			}
			return known && best.beatenBy(&found, nodeUID(c.Table, row), c.Table.Name(row), c.Now)
		}
		return (c.entitled || beaten(promise(c, row))) && beaten(bounds.of(c, row, c.Disruption.Budgets))
	}, func(p *Plan) { best.replaceIfBetter(p, c.Now) })
	if best.Plan != nil {
		best.NominationsToClear = nominationsToClear(c, best.Node)
	}
	return best.Plan, refused, err
}

// Candidates returns one plan each for candidate nodes, starting at a random one. It stops when
// there are enough and one of them violates no budget. If there are none it returns the reasons,
// over all nodes, or the error of a filter that failed. Failures are ignored once there is a
// plan. It is used if extenders take part in preemption.
func Candidates(of *framework.PostFilterCall, limits Limits) ([]framework.Candidate, []decision.Tally, error) {
	c := newCall(of)
	var found []framework.Candidate
	refused, err := search(c, limits, func(table.Row) bool { return true }, func(p *Plan) {
		found = append(found, framework.Candidate{Node: p.Node, Victims: p.Victims, NumPDBViolations: p.NumPDBViolations})
	})
	return found, refused, err
}

// Left returns those candidates on whose node the pod still fits without all pods that it may
// preempt there, and whose victims no strict budget keeps. While extenders were asked, other pods
// may have been nominated or placed there. Extenders may choose other victims.
func Left(of *framework.PostFilterCall, candidates []framework.Candidate) []framework.Candidate {
	c := newCall(of)
	return slices.DeleteFunc(slices.Clone(candidates), func(o framework.Candidate) bool {
		row, known := c.Table.Find(o.Node)
		return !known || broken(&c.Disruption, o.Victims) != nil || fitsWithout(c, row, lowerPods(c, row)) != nil
	})
}

// Best returns the best of the candidates as a plan, nil if there are none.
func Best(of *framework.PostFilterCall, candidates []framework.Candidate) *Plan {
	c := newCall(of)
	var best choice
	for _, o := range candidates {
		victims := slices.SortedFunc(slices.Values(o.Victims), byImportance(c.Now))
		p := &Plan{Node: o.Node, Victims: victims, NumPDBViolations: o.NumPDBViolations}
		if row, known := c.Table.Find(o.Node); known {
			p.uid = nodeUID(c.Table, row)
		}
		best.replaceIfBetter(p, c.Now)
	}
	if best.Plan != nil {
		best.NominationsToClear = nominationsToClear(c, best.Node)
	}
	return best.Plan
}

// search makes a plan for one candidate row after the other, from a random one on, and
// calls take with each, until there are enough plans and one violates no budget. Rows for
// which worth is false are left out; worth must return true until take was called. If there is
// no plan, search returns the reasons over all nodes, or the errors; else nothing.
func search(c *call, limits Limits, worth func(table.Row) bool, take func(*Plan)) ([]decision.Tally, error) {
	rows := appendCandidateRows(nil, c)
	var refused tallies
	var errs []error
	enough, found, clean := limits.of(len(rows)), 0, 0
	first := c.Draw(len(rows))
	for i := range rows {
		row := rows[(first+i)%len(rows)]
		if !worth(row) {
			continue
		}
		plan, blocker := planFor(c, row)
		switch {
		case blocker != nil && blocker.Code == decision.Error:
			errs = append(errs, blocker.Failure())
			continue
		case blocker != nil:
			refused.add(blocker, 1)
			continue
		case len(plan.Victims) == 0:
			errs = append(errs, NoVictim(plan.Node))
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

// notHelpful is kube-scheduler's reason for a node that is no candidate: no pod's leaving would
// help.
var notHelpful = decision.Blocker{
	Code:    decision.UnschedulableAndUnresolvable,
	Reasons: []string{"Preemption is not helpful for scheduling"},
}

// appendCandidateRows appends the rows that the filters rejected as Unschedulable: removing
// pods may help there.
func appendCandidateRows(rows []table.Row, c *call) []table.Row {
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

// isCandidate reports whether evicting pods from the row may help: it has a node, and the
// filters rejected that as Unschedulable.
func isCandidate(c *call, row table.Row) bool {
	return c.Table.Node(row) != nil && c.Filters.Code(row) == decision.Unschedulable
}

// tallies counts nodes by the reason for which preemption on them is of no use, for the
// message of the pod.
type tallies []decision.Tally

// add adds nodes to the count of the reason b. Reasons with equal plugin and texts count
// as one.
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

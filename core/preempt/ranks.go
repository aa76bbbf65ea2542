package preempt

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// ranks holds, by row, the best plan that is possible on each candidate. It is kept
// between the pods of a class: only rows that changed, or whose nominations did, are
// ranked again.
type ranks struct {
	priority int32
	budgets  []*object.Budget
	revision uint64 // of the table
	// nominations is their revision.
	nominations uint64
	rows        []rank
	// order lists the rows that are open, the most promising first, except for the
	// volatile ones, which are ranked anew each time.
	order, volatile []table.Row
	// unranked are the rows that were no candidates and may be candidates by now.
	unranked []table.Row

	// candidates are those for the pod at hand, once listed.
	candidates []table.Row
	listed     bool

	changed []table.Row
	tries   []dryRun
	bounds  criteriaBounds
}

// rank is what is known of plans on a row: none can be better than its
// criteria.
type rank struct {
	criteria
	node    string
	uid     types.UID // of the node
	outlook outlook
	// volatile: it depends on the time, or on the pod at hand.
	volatile bool
	refusal  *decision.Blocker // of a trial that found no plan; nil: not tried, or it found one
}

type outlook int8

const (
	unknown  outlook = iota // it is not ranked
	nobody                  // there is no pod of lower priority
	hopeless                // they could all go, and it would not be enough
	open
)

func (r *rank) listed() bool { return r.outlook == open && r.refusal == nil && !r.volatile }

// searched is left of a class of which no ranks are kept so far. They are made for another
// pod, as there may be none, and for one that was searched for often.
type searched struct {
	pod   types.UID
	times int
}

// often is how many searches for one pod take longer than to make ranks.
const often = 8

// ranksOf returns the ranks of the pod's class as they are now; nil where they are not worth
// their while so far.
func ranksOf(c *framework.PostFilterCall) *ranks {
	if c.Cache == nil {
		return nil
	}
	if *c.Cache == nil {
		*c.Cache = &searched{pod: c.Pod.UID}
	}
	if s, known := (*c.Cache).(*searched); known && s.pod == c.Pod.UID && s.times < often {
		s.times++
		return nil
	}
	k, ok := (*c.Cache).(*ranks)
	if !ok || k.priority != c.Pod.Priority {
		k = &ranks{priority: c.Pod.Priority, budgets: c.Disruption.Budgets}
		*c.Cache = k
	}
	k.refresh(c)
	return k
}

// rowsOfChangedBudgets lists the rows with pods that a budget counts which changed since, or
// did before.
func (k *ranks) rowsOfChangedBudgets(c *framework.PostFilterCall) (rows []table.Row) {
	for _, b := range changes(k.budgets, c.Disruption.Budgets) {
		c.Table.PodsByLabels(b.Namespace, func(same *table.PodsWithLabels) {
			if pods := same.Pods(); len(pods) > 0 && b.Covers(pods[0].Pod) {
				for _, pl := range pods {
					rows = append(rows, pl.Row)
				}
			}
		})
	}
	k.budgets = c.Disruption.Budgets
	slices.Sort(rows)
	return slices.Compact(rows)
}

// changes returns the budgets that are in one list alone, in the order of both.
func changes(was, is []*object.Budget) (changed []*object.Budget) {
	for len(was) > 0 && len(is) > 0 {
		switch order := byName(was[0], is[0]); {
		case was[0] == is[0]:
			was, is = was[1:], is[1:]
		case order <= 0:
			changed, was = append(changed, was[0]), was[1:]
		default:
			changed, is = append(changed, is[0]), is[1:]
		}
	}
	return append(append(changed, was...), is...)
}

func byName(a, b *object.Budget) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func (k *ranks) refresh(c *framework.PostFilterCall) {
	t := c.Table
	k.listed = false
	if n := t.Rows() - len(k.rows); n > 0 {
		k.rows = slices.Grow(k.rows, n)[:t.Rows()]
		clear(k.rows[t.Rows()-n:])
	}
	nodes, now, known := c.Nominations.ChangedSince(k.nominations)
	since := k.revision
	k.revision, k.nominations = t.Revision(), now
	if since == 0 { // none is ranked
		k.rankAll(c)
		return
	}
	k.changed = t.AppendChanged(k.changed[:0], since, t.Rows())
	if k.changed = slices.DeleteFunc(k.changed, func(r table.Row) bool { return t.Lasting(r) <= since }); !known || len(k.changed)+len(nodes) > 8+len(k.rows)/8 {
		k.budgets = c.Disruption.Budgets
		k.rankAll(c)
		return
	}
	if k.changed = append(k.changed, k.rowsOfChangedBudgets(c)...); len(k.changed) > len(k.rows)/2 {
		k.rankAll(c)
		return
	}
	for _, r := range k.changed {
		k.rankAnew(c, r)
	}
	for _, r := range slices.Clone(k.volatile) {
		k.rankAnew(c, r)
	}
	k.unranked = slices.DeleteFunc(k.unranked, func(r table.Row) bool {
		if k.rows[r].outlook == unknown && isCandidate(c, r) {
			k.rankAnew(c, r)
		}
		return k.rows[r].outlook != unknown
	})
	for _, node := range append(slices.Clip(nodes), c.Nominations.NodeName) {
		if r, ok := t.Find(node); ok {
			k.rankAnew(c, r)
		}
	}
}

func (k *ranks) rankAll(c *framework.PostFilterCall) {
	k.order, k.volatile, k.unranked = k.order[:0], k.volatile[:0], k.unranked[:0]
	clear(k.rows)
	rows := k.candidateRows(c)
	if own, ok := c.Table.Find(c.Nominations.NodeName); ok && !isCandidate(c, own) {
		rows = append(slices.Clip(rows), own)
	}
	for _, row := range rows {
		switch {
		case !k.rank(c, row):
		case k.rows[row].volatile:
			k.volatile = append(k.volatile, row)
		default:
			k.order = append(k.order, row)
		}
	}
	slices.SortFunc(k.order, k.compare)
	for row := range k.rows {
		if k.rows[row].outlook == unknown {
			k.unranked = append(k.unranked, table.Row(row))
		}
	}
}

// candidateRows lists the rows where removing pods may help the pod at hand.
func (k *ranks) candidateRows(c *framework.PostFilterCall) []table.Row {
	if !k.listed {
		k.candidates, k.listed = appendCandidateRows(k.candidates[:0], c), true
	}
	return k.candidates
}

// rankAnew ranks the row again and moves it to its new place in the order.
func (k *ranks) rankAnew(c *framework.PostFilterCall, row table.Row) {
	k.unlist(row)
	if k.rank(c, row) {
		k.list(row)
	}
}

func (k *ranks) list(row table.Row) {
	if k.rows[row].volatile {
		k.volatile = append(k.volatile, row)
		return
	}
	at, _ := slices.BinarySearchFunc(k.order, row, k.compare)
	k.order = slices.Insert(k.order, at, row)
}

func (k *ranks) unlist(row table.Row) {
	switch r := &k.rows[row]; {
	case r.volatile:
		k.volatile = slices.DeleteFunc(k.volatile, func(other table.Row) bool { return other == row })
	case r.listed():
		at, _ := slices.BinarySearchFunc(k.order, row, k.compare)
		k.order = slices.Delete(k.order, at, at+1)
	}
}

// compare orders rows that are not volatile: their pods have started before now
// or not at all, which is later than all others.
func (k *ranks) compare(a, b table.Row) int {
	x, y := &k.rows[a], &k.rows[b]
	if order := x.criteria.compare(&y.criteria, endOfTime); order != 0 {
		return order
	}
	return byUID(x.uid, y.uid, x.node, y.node)
}

// endOfTime is later than any time that a pod can have started.
var endOfTime = time.Unix(math.MaxInt64-secondsBefore1970, 999_999_999)

// secondsBefore1970 are those from the year 1 on, from which time.Time counts.
const secondsBefore1970 = 62_135_596_800

// rank ranks a row by the filters' verdict without its lower pods, if that verdict holds
// as long as the rank does, and by sums over those pods. It reports whether a plan is
// possible or the rank may change with time.
func (k *ranks) rank(c *framework.PostFilterCall, row table.Row) bool {
	r, b := &k.rows[row], &k.bounds
	*r = rank{node: c.Table.Name(row), uid: nodeUID(c.Table, row), outlook: nobody}
	b.begin(c, row)
	if len(b.pods) > 0 && c.Filters.Local {
		r.refusal, _ = withoutLower(c, row)
	}
	for _, n := range c.Nominations.PodsForNode(r.node) {
		r.volatile = r.volatile || n.UID == c.Pod.UID
		b.keep(c, n)
	}
	for _, p := range b.pods {
		r.volatile = r.volatile || !p.Started.Before(c.Now)
	}
	if len(b.pods) > 0 {
		r.outlook = hopeless
		if r.refusal == nil {
			if found, ok := b.best(c, c.Disruption.Budgets); ok {
				r.outlook, r.criteria = open, found
			}
		}
	}
	return r.outlook == open || r.volatile
}

// dryRun is the result of a dry run on a row: a plan, or the reason for none.
type dryRun struct {
	row     table.Row
	plan    *Plan             // nil, or without victims where filters contradict themselves
	refusal *decision.Blocker // why there is no plan
}

// best tries the rows, the most promising first, until no other can be better.
// Where what comes out is not known the next time, enough plans are enough.
// nil: there is none.
func (k *ranks) best(c *framework.PostFilterCall, limits Limits) *Plan {
	var best choice
	found, clean, enough := 0, 0, limits.of(c.Table.Live())
	k.tries = k.tries[:0]
	for row := range k.byRank(c) {
		r := &k.rows[row]
		if !best.beatenBy(&r.criteria, r.uid, r.node, c.Now) || !c.Filters.Local && clean > 0 && found >= enough {
			break
		}
		if !isCandidate(c, row) {
			continue
		}
		plan, refusal := planFor(c, row)
		if k.tries = append(k.tries, dryRun{row, plan, refusal}); refusal != nil || len(plan.Victims) == 0 {
			continue
		}
		best.take(plan, c.Now)
		if found++; plan.NumPDBViolations == 0 {
			clean++
		}
	}
	if c.Filters.Local {
		k.keepTries()
	}
	return best.Plan
}

// keepTries keeps what the tries have shown: it will be the same the next time, but
// for failures, which name what the pod at hand has.
func (k *ranks) keepTries() {
	for _, t := range k.tries {
		r := &k.rows[t.row]
		if t.refusal != nil && t.refusal.Code == decision.Error {
			continue
		}
		k.unlist(t.row)
		if r.refusal = t.refusal; r.refusal == nil && len(t.plan.Victims) > 0 {
			r.criteria = t.plan.criteria()
		}
		if r.volatile || r.listed() {
			k.list(t.row)
		}
	}
}

// byRank iterates over the rows with a possible plan, the most promising first.
func (k *ranks) byRank(c *framework.PostFilterCall) iter.Seq[table.Row] {
	compare := func(a, b table.Row) int {
		x, y := &k.rows[a], &k.rows[b]
		if order := x.criteria.compare(&y.criteria, c.Now); order != 0 {
			return order
		}
		return byUID(x.uid, y.uid, x.node, y.node)
	}
	return func(yield func(table.Row) bool) {
		volatile := slices.DeleteFunc(slices.Clone(k.volatile), func(r table.Row) bool { return k.rows[r].outlook != open })
		slices.SortFunc(volatile, compare)
		for _, row := range k.order {
			for len(volatile) > 0 && compare(volatile[0], row) < 0 {
				if !yield(volatile[0]) {
					return
				}
				volatile = volatile[1:]
			}
			if !yield(row) {
				return
			}
		}
		for _, row := range volatile {
			if !yield(row) {
				return
			}
		}
	}
}

// refused returns why there is no plan, over all nodes.
func (k *ranks) refused(c *framework.PostFilterCall) ([]decision.Tally, error) {
	tried := map[table.Row]dryRun{}
	for _, t := range k.tries {
		tried[t.row] = t
	}
	rows := k.candidateRows(c)
	var refused tallies
	var errs []error
	k.tries = k.tries[:0]
	alone := 0
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
			errs = append(errs, noVictim(k.rows[row].node))
			continue
		case blocker.Code == decision.Error:
			errs = append(errs, blocker.Failure())
			continue
		}
		refused.add(blocker, 1)
	}
	if c.Filters.Local {
		k.keepTries()
	}
	if len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	refused.add(&notHelpful, c.Table.Live()-len(rows))
	return refused, nil
}

func noVictim(node string) error {
	return fmt.Errorf("expected at least one victim pod on node %q", node)
}

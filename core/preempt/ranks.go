package preempt

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/index/priorities"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// ranks holds a rank for each row: criteria that no plan there can beat. Rows that may have
// a plan are in a heap, the most promising first. At first a row ranks like one victim of
// the lowest priority there; its pods' resources and budgets are looked at only when it is
// first in the heap. Ranks are kept between the pods of a class: only rows that changed, or
// whose nominations did, are ranked again.
type ranks struct {
	priority    int32            // of the pods of the class
	quotas      uint64           // call.quotas, when the ranks were made
	strict      bool             // Disruption.Strict, when the ranks were made
	budgets     []*object.Budget // as of the last refresh
	revision    uint64           // of the table, as of the last search; 0: nothing is ranked
	nominations uint64           // their revision
	now         time.Time        // time of the last refresh
	rows        []rank           // by row
	heap        []table.Row      // rows that may have a plan; container/heap orders it
	// volatile are rows whose rank depends on the time, or on the pod at hand, and so is
	// computed for each pod.
	volatile []table.Row
	// unranked are rows that were no candidates at the last refresh, and may be now.
	unranked []table.Row

	// candidates are the candidate rows of the pod at hand, if listed.
	candidates []table.Row
	listed     bool

	changed []table.Row    // scratch of refresh
	tries   []dryRun       // trials for the pod at hand
	bounds  criteriaBounds // scratch of workOut
}

// rank is what is known of plans on a row: none can be better than its criteria.
type rank struct {
	criteria
	node    string
	uid     types.UID         // of the node
	outlook outlook           // how much is known
	at      int32             // index in the heap plus 1; 0: not in it
	refusal *decision.Blocker // why there is no plan; nil: there is one, or it is not known
}

// outlook is how much is known of a row. Each step costs more to find out.
type outlook int8

const (
	unknown   outlook = iota // not ranked: it was no candidate
	nobody                   // no pod there has a lower priority
	hopeless                 // without all pods of lower priority the pod still lacks resources
	promising                // there are pods of lower priority; no more is known
	asked                    // filters accept the pod without them
	open                     // its criteria are computed from what its pods free
)

// mayHavePlan reports whether a plan on the row is not excluded.
func (r *rank) mayHavePlan() bool { return r.outlook >= promising && r.refusal == nil }

// Len returns the number of rows in the heap. It, Less, Swap, Push and Pop are for
// container/heap.
func (k *ranks) Len() int { return len(k.heap) }

// Less orders rows by their criteria, the best first. Of equal ones those come first whose outlook
// is not open yet, in the order of rows. Then the node UID decides, and so it decides which nodes
// are tried if a few plans are enough.
func (k *ranks) Less(i, j int) bool {
	a, b := k.heap[i], k.heap[j]
	x, y := &k.rows[a], &k.rows[b]
	switch order := x.criteria.compare(&y.criteria, k.now); {
	case order != 0:
		return order < 0
	case (x.outlook == open) != (y.outlook == open):
		return y.outlook == open
	case x.outlook != open:
		return a < b
	}
	return byUID(x.uid, y.uid, x.node, y.node) < 0
}

// Swap swaps two rows of the heap and corrects the heap index in their ranks.
func (k *ranks) Swap(i, j int) {
	k.heap[i], k.heap[j] = k.heap[j], k.heap[i]
	k.rows[k.heap[i]].at, k.rows[k.heap[j]].at = int32(i+1), int32(j+1) // #nosec G115 -- of rows
}

// Push appends a table.Row to the heap.
func (k *ranks) Push(row any) {
	k.heap = append(k.heap, row.(table.Row))
	k.rows[row.(table.Row)].at = int32(len(k.heap)) // #nosec G115 -- of rows
}

// Pop removes the last row of the heap and returns it.
func (k *ranks) Pop() any {
	last := len(k.heap) - 1
	row := k.heap[last]
	k.heap, k.rows[row].at = k.heap[:last], 0
	return row
}

// takeOut removes the row from the heap, if it is there.
func (k *ranks) takeOut(row table.Row) {
	if at := k.rows[row].at; at > 0 {
		heap.Remove(k, int(at-1))
	}
}

// putIn puts the row into the heap, from which best takes rows, if it may have a plan and
// is not there.
func (k *ranks) putIn(row table.Row) {
	if r := &k.rows[row]; r.at == 0 && r.mayHavePlan() {
		heap.Push(k, row)
	}
}

// order removes the rows that cannot have a plan from the heap and restores its order.
func (k *ranks) order() {
	may := k.heap[:0]
	for _, row := range k.heap {
		if r := &k.rows[row]; r.mayHavePlan() {
			may = append(may, row)
			r.at = int32(len(may)) // #nosec G115 -- of rows
		} else {
			r.at = 0
		}
	}
	k.heap = may
	heap.Init(k)
}

// refresh brings the ranks up to date with the table, the nominations, the budgets and the
// pod at hand. It sets k.revision to 0; find sets it again at its end.
func (k *ranks) refresh(c *call) {
	t := c.Table
	since := k.revision
	k.revision, k.listed, k.tries = 0, false, k.tries[:0] // after a panic all are ranked anew
	nodes, now, known := c.Nominations.ChangedSince(k.nominations)
	k.nominations = now
	if n := t.Rows() - len(k.rows); n > 0 {
		k.rows = append(k.rows, make([]rank, n)...)
	}
	if since == 0 || !known || c.Now.Before(k.now) {
		k.rankAll(c)
		return
	}
	k.changed = t.AppendChanged(k.changed[:0], since, t.Rows())
	k.changed = slices.DeleteFunc(k.changed, func(r table.Row) bool { return t.Lasting(r) <= since })
	if len(k.changed)+len(nodes) > 8+len(k.rows)/8 {
		k.rankAll(c)
		return
	}
	k.changed = append(k.changed, k.rowsOfChangedBudgets(c)...)
	for _, node := range append(slices.Clip(nodes), c.Nominations.NodeName) {
		if r, ok := t.Find(node); ok {
			k.changed = append(k.changed, r)
		}
	}
	k.changed = append(k.changed, k.volatile...)
	k.unranked = slices.DeleteFunc(k.unranked, func(r table.Row) bool {
		if k.rows[r].outlook == unknown && isCandidate(c, r) {
			k.changed = append(k.changed, r)
		}
		return k.rows[r].outlook != unknown
	})
	if len(k.changed) > len(k.rows)/2 {
		k.rankAll(c)
		return
	}
	slices.Sort(k.changed)
	k.changed = slices.Compact(k.changed)
	for _, r := range k.changed {
		k.takeOut(r)
	}
	k.now, k.volatile = c.Now, k.volatile[:0] // what is left has the same order at any time
	for _, r := range k.changed {
		k.rank(c, r)
		k.putIn(r)
	}
}

// rankAll ranks all candidate rows and the row that the pod is nominated to anew.
func (k *ranks) rankAll(c *call) {
	k.heap, k.volatile, k.unranked = k.heap[:0], k.volatile[:0], k.unranked[:0]
	k.now, k.budgets = c.Now, c.Disruption.Budgets
	clear(k.rows)
	for _, row := range k.candidateRows(c) {
		k.rank(c, row)
		k.heap = append(k.heap, row)
	}
	if own, ok := c.Table.Find(c.Nominations.NodeName); ok && k.rows[own].outlook == unknown {
		k.rank(c, own)
		k.heap = append(k.heap, own)
	}
	for row := range k.rows {
		if k.rows[row].outlook == unknown {
			k.unranked = append(k.unranked, table.Row(row))
		}
	}
	k.order()
}

// candidateRows returns the rows where removing pods may help the pod at hand. They are
// listed once for a pod.
func (k *ranks) candidateRows(c *call) []table.Row {
	if !k.listed {
		k.candidates, k.listed = appendCandidateRows(k.candidates[:0], c), true
	}
	return k.candidates
}

// rank makes the first, cheap estimate for a row that is not in the heap: promising, with
// the criteria of one victim of the lowest priority there, or nobody if no pod has a lower
// priority than the pod at hand.
func (k *ranks) rank(c *call, row table.Row) {
	found, ok := promise(c, row)
	if !ok {
		k.rows[row] = rank{outlook: nobody}
		return
	}
	k.rows[row] = rank{outlook: promising, criteria: found}
}

// promise returns the criteria of a plan with one victim, of the lowest priority on the row
// and the last that started: no plan there is better. It returns false if no pod has a lower
// priority than the pod at hand.
func promise(c *call, row table.Row) (criteria, bool) {
	lowest := priorities.Of(c.Table).Lowest(row)
	if lowest >= c.Pod.Priority {
		return criteria{}, false
	}
	since := priorities.Of(c.Table).LatestOfLowest(row, c.Now)
	if !since.Before(c.Now) || since.IsZero() {
		since = endOfTime
	}
	return criteria{highest: lowest, weight: weight(lowest), victims: 1, since: since}, true
}

// endOfTime is later than any start time of a pod.
var endOfTime = time.Unix(math.MaxInt64-secondsBefore1970, 999_999_999)

// secondsBefore1970 is the number of seconds from the year 1, from which time.Time counts,
// to 1970: a time.Time beyond endOfTime would overflow.
const secondsBefore1970 = 62_135_596_800

// ask asks the filters whether the pod fits a promising row without all pods of lower
// priority. If so, or if only a trial can tell, it sets the row's outlook to asked. Else it sets
// refusal to the reason, and adds the row to k.tries.
func (k *ranks) ask(c *call, row table.Row) {
	r := &k.rows[row]
	if r.refusal, _ = withoutLower(c, row); r.refusal != nil {
		k.tries = append(k.tries, dryRun{row: row, refusal: r.refusal})
		return
	}
	r.outlook = asked
}

// workOut computes, for a row that the filters accept without its pods of lower priority,
// the best criteria that a plan there can have, from what those pods free. Its outlook is
// open then, or hopeless if they do not free enough. A row whose criteria depend on the time or on
// this very pod is added to k.volatile.
func (k *ranks) workOut(c *call, row table.Row) {
	r, b := &k.rows[row], &k.bounds
	found, ok := b.of(c, row, c.Disruption.Budgets)
	if !ok {
		r.outlook = hopeless
		return
	}
	r.outlook, r.criteria, r.node, r.uid = open, found, c.Table.Name(row), nodeUID(c.Table, row)
	if slices.ContainsFunc(c.Nominations.PodsForNode(r.node), func(n *object.Pod) bool { return n.UID == c.Pod.UID }) ||
		slices.ContainsFunc(b.pods, func(p *object.Pod) bool { return !p.Started.Before(c.Now) }) {
		k.volatile = append(k.volatile, row)
	}
}

// rowsOfChangedBudgets returns the rows with pods that are covered by a budget which
// changed since the last refresh, some rows more than once. It keeps the budgets for the next call.
func (k *ranks) rowsOfChangedBudgets(c *call) (rows []table.Row) {
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
	return rows
}

// changes returns the budgets that are in only one of the lists, which are sorted by name.
// Budgets are compared by pointer: one that changed is another.
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

// byName compares budgets by namespace, then name.
func byName(a, b *object.Budget) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

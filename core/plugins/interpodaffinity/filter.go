package interpodaffinity

import (
	"math"
	"math/bits"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

const (
	affinityNotMet             framework.Verdict = 1 + iota // by the pod's required affinity
	antiAffinityNotMet                                      // by the pod's required anti-affinity
	existingAntiAffinityNotMet                              // by the required anti-affinity of placed pods
)

// The reasons of the verdicts.
const (
	ReasonAffinity             = "node(s) didn't match pod affinity rules"
	ReasonAntiAffinity         = "node(s) didn't match pod anti-affinity rules"
	ReasonExistingAntiAffinity = "node(s) didn't satisfy existing pods anti-affinity rules"
)

// filterCells writes the cell of each row, which decides the row's verdict: the number of its
// location (the rows in the same shared domains) and, in the low bits, a bit for each kind with a
// count above 0 in the domain that only this node is in, such as its hostname. The cell of a row
// without a node is negative.
func filterCells(in *framework.Input, rows []table.Row, out []int64) {
	c := in.State.(*counts)
	locations, owns := c.layout.Locations(), c.layout.Owns()
	for i, r := range rows {
		out[i] = int64(locations[r]) << kinds
	}
	for k, own := range c.own {
		if own == nil {
			continue
		}
		for i, r := range rows {
			if d := owns[r]; d != domain.None && own.Sums[d] > 0 {
				out[i] |= 1 << k
			}
		}
	}
}

// verdict returns the verdict on the rows of a cell. It checks the pod's affinity first, then its
// anti-affinity, then that of placed pods. A negative cell (no node) fits.
func verdict(in *framework.Input, cell int64) framework.Verdict {
	if cell < 0 {
		return framework.Fits
	}
	c := in.State.(*counts)
	domains := c.layout.Domains(int32(cell >> kinds))
	return c.verdict(c.totalOf(affinity), func(p *place, k kind) (found, missing bool) {
		switch d := domains[p.at]; d {
		case domain.Missing:
			return false, true
		case domain.Own:
			return cell&(1<<k) != 0, false
		default:
			return p.holds(d, 0), false
		}
	})
}

// verdict returns the verdict on a node. As in kube-scheduler, it checks the pod's affinity first,
// then its anti-affinity, then that of placed pods. The first that rejects the node decides. has
// reports whether the column counts a pod in the node's domain (found), and whether the node lacks
// the topology label (missing). total is 0 if no other pod matches the pod's required affinity: if
// the pod matches that itself, only a missing label rejects the node by it.
func (c *counts) verdict(total int64, has func(*place, kind) (found, missing bool)) framework.Verdict {
	first := c.first(total)
	for i := range c.by[affinity] {
		if found, missing := has(&c.by[affinity][i], affinity); missing || !first && !found {
			return affinityNotMet
		}
	}
	for i := range c.by[antiAffinity] {
		if found, _ := has(&c.by[antiAffinity][i], antiAffinity); found {
			return antiAffinityNotMet
		}
	}
	for i := range c.by[existingAntiAffinity] {
		if found, _ := has(&c.by[existingAntiAffinity][i], existingAntiAffinity); found {
			return existingAntiAffinityNotMet
		}
	}
	return framework.Fits
}

// first reports whether the pod matches its own required affinity and no other pod does, so that it
// may go to any node with the topology labels. total is 0 if no other pod matches it.
func (c *counts) first(total int64) bool { return c.self && total == 0 }

// rowVerdicts writes the verdict on each row to out, without cells. It first collects
// there, as bits, the kinds for which a domain of the row rejects the pod.
func rowVerdicts(in *framework.Input, rows []table.Row, out []framework.Verdict) {
	c := in.State.(*counts)
	clear(out)
	first := c.first(c.totalOf(affinity))
	for at, p := range c.layout.Topologies {
		of, rejected := p.Of(), c.rejectedDomains(at, first)
		for i, r := range rows {
			out[i] |= framework.Verdict(rejected[of[r]])
		}
	}
	for i, set := range out {
		out[i] = firstOf[set]
	}
}

// rejectedDomains returns, for each domain of the topology with index at, the kinds for which it
// rejects the pod, as bits. Nodes without the label (domain.Missing) are rejected by affinity
// alone. first is the result of counts.first. The slice is scratch. The loops do not branch on
// counts, which are unpredictable.
func (c *counts) rejectedDomains(at int, first bool) []uint8 {
	rejected := append(c.pl.rejected[:0], make([]uint8, c.layout.Topologies[at].Len())...)
	c.pl.rejected = rejected
	missing := uint8(0)
	for i := range c.by[affinity] {
		p := &c.by[affinity][i]
		if p.at != at {
			continue
		}
		if missing = 1 << affinity; first {
			continue
		}
		for d, n := range p.Sums[:len(rejected)] {
			rejected[d] |= (positive(n) ^ 1) << affinity
		}
	}
	for _, k := range [...]kind{antiAffinity, existingAntiAffinity} {
		for i := range c.by[k] {
			if p := &c.by[k][i]; p.at == at {
				for d, n := range p.Sums[:len(rejected)] {
					rejected[d] |= positive(n) << k
				}
				for _, d := range p.closed {
					rejected[d] |= 1 << k
				}
			}
		}
	}
	rejected[domain.Missing] = missing
	return rejected
}

// firstOf is, by the set of kinds (bits) that reject a node, the verdict on the node: upstream
// names only the first kind that it checks, the pod's affinity before its anti-affinity before that
// of placed pods. 0, the verdict for no kind, fits.
var firstOf = [1 << kinds]framework.Verdict{
	0, affinityNotMet, antiAffinityNotMet, affinityNotMet, existingAntiAffinityNotMet, affinityNotMet, antiAffinityNotMet, affinityNotMet,
}

// positive returns 1 for a positive number, else 0.
func positive(n int64) uint8 { return uint8(uint64(-n) >> 63) }

// exchanged returns the verdict on the row as if its pods of a priority lower than below were gone
// and the pods of came were there. It changes no table. known is false if only a trial can tell: a
// pod of came has a term that selects the pod, or the pod has more than mostTermSets term sets.
func exchanged(in *framework.Input, row table.Row, below int32, came []*object.Pod) (v framework.Verdict, known bool) {
	c := in.State.(*counts)
	if c.layout.Locations()[row] == noNode {
		return framework.Fits, true
	}
	if len(c.terms) > mostTermSets {
		return 0, false
	}
	for _, p := range came {
		if p.Affinity != nil && slices.ContainsFunc(p.Affinity.Terms, func(term match.PodTerm) bool {
			return term.MatchesPending(in.Pod.Namespace, in.Table.Namespaces().Labels(in.Pod.Namespace), in.Pod.Labels)
		}) {
			return 0, false
		}
	}
	if v, known := c.surely(in.Table, row, below, came); known {
		return v, true
	}
	total := c.totalOf(affinity) - c.leave(in.Table, row, below, came)
	return c.verdict(total, func(p *place, _ kind) (found, missing bool) {
		d := p.Of()[row]
		return d != domain.Missing && p.holds(d, p.gone), d == domain.Missing
	}), true
}

// surely returns the verdict of exchanged if numbers alone decide it: a domain that has more pods
// than could leave still has some. known is false if they do not, for a class with required
// affinity, and if came is not empty.
func (c *counts) surely(t *table.Table, row table.Row, below int32, came []*object.Pod) (v framework.Verdict, known bool) {
	if len(c.by[affinity])+len(came) > 0 {
		return 0, false
	}
	if most := c.mostAt(antiAffinity, row); most > int64(t.CountLower(row, below)*len(c.terms)) {
		return antiAffinityNotMet, true
	} else if most > 0 {
		return 0, false
	}
	most := c.mostAt(existingAntiAffinity, row)
	if most == 0 {
		return framework.Fits, true
	}
	for _, s := range t.Summaries(row) {
		if s.Priority < below {
			most -= int64(s.Terms)
		}
	}
	return existingAntiAffinityNotMet, most > 0
}

// mostAt returns the greatest sum of the kind's columns in a domain of the row. It is MaxInt64 if a
// domain of the row is closed: no pod that leaves opens it.
func (c *counts) mostAt(k kind, row table.Row) (most int64) {
	for i := range c.by[k] {
		p := &c.by[k][i]
		switch d := p.Of()[row]; {
		case d == domain.Missing:
		case slices.Contains(p.closed, d):
			return math.MaxInt64
		default:
			most = max(most, p.Sums[d])
		}
	}
	return most
}

// leave sets gone in each column to how much of it leaves with the row's pods of a priority lower
// than below, less what the pods of came add by the class's own terms. It returns the sum of gone
// over the columns of the pod's required affinity whose topology label the row's node has.
func (c *counts) leave(t *table.Table, row table.Row, below int32, came []*object.Pod) (total int64) {
	for k := range c.by {
		for i := range c.by[k] {
			c.by[k][i].gone = 0
		}
	}
	count := func(q *termSet, n int64) {
		for _, s := range q.shares {
			of := &c.by[q.kind][s.column]
			if of.gone += n * s.n; q.kind == affinity && of.Of()[row] != domain.Missing {
				total += n * s.n
			}
		}
	}
	for placed := range t.Lower(row, below) {
		for about := c.termsAbout(t, placed); about != 0; about &= about - 1 {
			count(&c.terms[bits.TrailingZeros64(about)], 1)
		}
		if c.existing != nil {
			c.existing.sharesOf(placed.Terms(), func(s share) { c.by[existingAntiAffinity][s.column].gone += s.n })
		}
	}
	for _, p := range came {
		for i := range c.terms {
			if q := &c.terms[i]; allTermsMatch(t, q.terms, p.Namespace, p.Labels) {
				count(q, -1)
			}
		}
	}
	return total
}

// mostTermSets is how many term sets a pod may have for preemption to compute from counts
// whether the pod would fit without a node's victims: a bit for each. With more, the victims
// are removed for a trial instead.
const mostTermSets = 64

// labelSetsKept is the number of label sets of placed pods for which keptTerms keeps a result.
// Those with equal Number modulo labelSetsKept share a slot.
const labelSetsKept = 1024

// keptTerms keeps, by the placed pods' labels, which term sets of a pod select them. It is for one
// class, that of the pod that was asked about last, since a preemption looks at many rows for one
// pod.
type keptTerms struct {
	class  *counts
	byPods [labelSetsKept]termsOfPods
}

// termsOfPods says which term sets of the pod to be placed select the placed pods with one
// namespace and set of labels (pods): bit i of terms is set for the i-th.
type termsOfPods struct {
	pods  *table.PodsWithLabels
	terms uint64
}

// termsAbout returns the indices of the class's term sets that select the placed pod, as bits. It
// keeps results for placed pods with the same labels. There may be at most mostTermSets sets.
func (c *counts) termsAbout(t *table.Table, p *table.Placed) (about uint64) {
	if len(c.terms) == 0 {
		return 0
	}
	alike := p.WithLabels()
	if alike == nil { // nobody has asked for those that are alike
		return c.termsMatching(t, p.Pod)
	}
	kept := &c.pl.about
	if kept.class != c {
		kept.class = c
		clear(kept.byPods[:])
	}
	known := &kept.byPods[alike.Number%labelSetsKept]
	if known.pods != alike {
		*known = termsOfPods{alike, c.termsMatching(t, p.Pod)}
	}
	return known.terms
}

// termsMatching computes which of the class's term sets select the pod p, as bits by index.
func (c *counts) termsMatching(t *table.Table, p *object.Pod) (about uint64) {
	for i := range c.terms {
		if allTermsMatch(t, c.terms[i].terms, p.Namespace, p.Labels) {
			about |= 1 << i
		}
	}
	return about
}

// explain returns the code and reason of a verdict. Only affinityNotMet is
// UnschedulableAndUnresolvable: preemption may help against the others.
func explain(_ *framework.Input, _ table.Row, v framework.Verdict) decision.Blocker {
	switch v {
	case affinityNotMet:
		return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{ReasonAffinity}}
	case antiAffinityNotMet:
		return decision.Blocker{Code: decision.Unschedulable, Reasons: []string{ReasonAntiAffinity}}
	}
	return decision.Blocker{Code: decision.Unschedulable, Reasons: []string{ReasonExistingAntiAffinity}}
}

package interpodaffinity

import (
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
	affinityNotMet             framework.Verdict = 1 + iota // the pod's required affinity
	antiAffinityNotMet                                      // the pod's required anti-affinity
	existingAntiAffinityNotMet                              // that of existing pods
)

// The reasons of the verdicts.
const (
	ReasonAffinity             = "node(s) didn't match pod affinity rules"
	ReasonAntiAffinity         = "node(s) didn't match pod anti-affinity rules"
	ReasonExistingAntiAffinity = "node(s) didn't satisfy existing pods anti-affinity rules"
)

// filterCells writes each row's cell: its location and, below it, a bit for each
// kind that the node itself has any of.
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

// verdict returns the verdict on a cell. It checks the pod's affinity first (the pod may
// be the first that it matches), then its anti-affinity, then that of placed pods.
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
			return p.Sums[d] > 0, false
		}
	})
}

// verdict returns the verdict on a node. has reports what its domains hold, by place;
// total is the number of pods, anywhere, that match the pod's required affinity.
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

// first reports whether the pod is the first that its required affinity selects, and so
// may go anywhere; total is the number of pods that match it.
func (c *counts) first(total int64) bool { return c.self && total == 0 }

// rowVerdicts writes the verdict on each row to out. It first collects there, as bits,
// the kinds of terms for which a domain of the row rejects the pod.
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

// rejectedDomains returns, for each domain of one topology, the kinds of terms for which
// it rejects its rows, as bits. The loops do not branch on counts, which are
// unpredictable.
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
			}
		}
	}
	rejected[domain.Missing] = missing
	return rejected
}

// firstOf is the verdict for a set of kinds: that of the first.
var firstOf = [1 << kinds]framework.Verdict{
	0, affinityNotMet, antiAffinityNotMet, affinityNotMet, existingAntiAffinityNotMet, affinityNotMet, antiAffinityNotMet, affinityNotMet,
}

// positive returns 1 for a positive number, else 0.
func positive(n int64) uint8 { return uint8(uint64(-n) >> 63) }

// exchanged returns the verdict on the row less what the pods of a priority below that count for,
// and with what those that came do. It is not known where one of these has a term about the pod.
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
			return termMatches(in.Table, &term, in.Pod.Namespace, in.Pod.Labels)
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
		return d != domain.Missing && p.Sums[d]-p.gone > 0, d == domain.Missing
	}), true
}

// surely returns the verdict of exchanged if numbers alone decide it: a domain that holds
// more pods than leave still holds some. It returns false for a class with required
// affinity.
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

// mostAt returns the most that is found for the kind in a domain of the row.
func (c *counts) mostAt(k kind, row table.Row) (most int64) {
	for i := range c.by[k] {
		p := &c.by[k][i]
		if d := p.Of()[row]; d != domain.Missing {
			most = max(most, p.Sums[d])
		}
	}
	return most
}

// leave records in each place how much leaves with the row's pods of a priority lower
// than below, less what the pods of came bring. It returns how much of that matches the
// pod's required affinity.
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

// mostTermSets is how many sets of terms there may be for exchanged to know.
const mostTermSets = 64

// labelSetsKept bounds what is kept for termsAbout.
const labelSetsKept = 1024

// keptTerms keeps what termsAbout returned for pods by their labels, of the class that was asked
// about last alone: a search asks about many rows, and many classes may be kept.
type keptTerms struct {
	class  *counts
	byPods [labelSetsKept]termsOfPods
}

// termsOfPods is the set of a class's terms that select pods with the same namespace and
// labels, a bit a term.
type termsOfPods struct {
	pods  *table.PodsWithLabels
	terms uint64
}

// termsAbout returns the set of the terms that are about the pod. It is kept for all pods with
// the same labels, unless others come in between.
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

func (c *counts) termsMatching(t *table.Table, p *object.Pod) (about uint64) {
	for i := range c.terms {
		if allTermsMatch(t, c.terms[i].terms, p.Namespace, p.Labels) {
			about |= 1 << i
		}
	}
	return about
}

func explain(_ *framework.Input, _ table.Row, v framework.Verdict) decision.Blocker {
	switch v {
	case affinityNotMet:
		return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{ReasonAffinity}}
	case antiAffinityNotMet:
		return decision.Blocker{Code: decision.Unschedulable, Reasons: []string{ReasonAntiAffinity}}
	}
	return decision.Blocker{Code: decision.Unschedulable, Reasons: []string{ReasonExistingAntiAffinity}}
}

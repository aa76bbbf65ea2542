package podtopologyspread

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

const (
	reasonSkew  = "node(s) didn't match pod topology spread constraints"
	reasonLabel = reasonSkew + " (missing required label)"
)

const (
	unlabelled framework.Verdict = 1 + iota // the node lacks the topology label of a constraint
	skewed                                  // its domain would have too many matching pods
)

// verdict returns the verdict on the rows of a cell, by the first constraint that is not met. It is
// unlabelled if the rows lack the topology label. It is skewed if their domain, with the pod, would
// have over maxSkew matching pods more than the domain with the fewest. A negative cell, of rows
// without a node, fits.
func verdict(in *framework.Input, cell int64) framework.Verdict {
	c := in.State.(*counts)
	if cell < 0 {
		return framework.Fits
	}
	location := c.census.layout.Domains(locationOf(cell))
	for i := range c.constraints {
		d := c.domainOf(i, location)
		if d == domain.Missing {
			return unlabelled
		}
		if c.podsAt(i, d, cell) > c.most(i) {
			return skewed
		}
	}
	return framework.Fits
}

// most returns the largest number of matching pods that a domain of the constraint (by index) may
// have before the pod is added, if the pod is to fit.
func (c *counts) most(constraint int) int64 {
	of := &c.constraints[constraint]
	most := c.columns[c.of[constraint]].leastPods(of.MinDomains) + int64(of.MaxSkew)
	if of.Self {
		most--
	}
	return most
}

// exchanged returns the verdict on the row as if its pods of a priority lower than below were gone
// and the pods of came were there, as a trial counts them. known is false if a constraint counts a
// pod of came: it may be added to the domain with the fewest.
func exchanged(in *framework.Input, row table.Row, below int32, came []*object.Pod) (v framework.Verdict, known bool) {
	c := in.State.(*counts)
	if in.Table.Node(row) == nil {
		return framework.Fits, true
	}
	for i := range c.columns {
		if c.matching(&c.columns[i], came) > 0 {
			return 0, false
		}
	}
	for i := range c.constraints {
		col := &c.columns[c.of[i]]
		d := col.Of()[row]
		if d == domain.Missing {
			return unlabelled, true
		}
		tooMany := col.Sums[d] - c.most(i)
		switch {
		case tooMany <= 0: // with fewer pods the domain may have the least itself, and the pod fits
		case tooMany > int64(in.Table.CountLower(row, below)) || col.need&^c.census.admitted[row] != 0 || c.matchingLower(in.Table, col, row, below) < tooMany:
			return skewed, true
		}
	}
	return framework.Fits, true
}

// matching returns how many of the pods the column would count if they were placed in one of
// its domains.
func (c *counts) matching(col *column, pods []*object.Pod) (n int64) {
	for _, p := range pods {
		if c.wouldCount(col, p) {
			n++
		}
	}
	return n
}

// matchingLower returns how many pods on the row with a priority lower than below the
// column counts.
func (c *counts) matchingLower(t *table.Table, col *column, row table.Row, below int32) (n int64) {
	for pl := range t.Lower(row, below) {
		if c.wouldCount(col, pl.Pod) {
			n++
		}
	}
	return n
}

// wouldCount reports whether the column counts p if p is added to a node for a trial: p is
// in the namespace of the pod to be placed and matches the selector, even if terminating.
func (c *counts) wouldCount(col *column, p *object.Pod) bool {
	return p.Namespace == c.pod.Namespace && c.matches(col.Selector, p, true)
}

// explain returns the code and reason of a verdict.
func explain(_ *framework.Input, _ table.Row, v framework.Verdict) decision.Blocker {
	if v == unlabelled {
		return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{reasonLabel}}
	}
	return decision.Blocker{Code: decision.Unschedulable, Reasons: []string{reasonSkew}}
}

package podtopologyspread

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

const (
	reasonSkew  = "node(s) didn't match pod topology spread constraints"
	reasonLabel = reasonSkew + " (missing required label)"
)

const (
	unlabelled framework.Verdict = 1 + iota // the node lacks a topology key
	skewed                                  // the pod would make its domain too full
)

// verdict is what the first constraint that objects says: with the pod, a
// domain may have no more than maxSkew matching pods above the domain that has
// least.
func verdict(in *framework.Input, cell int64) framework.Verdict {
	return in.State.(*counts).verdict(cell, nil)
}

// verdict is that on the cell with so many fewer pods in its domains, by constraint;
// nil: none fewer.
func (c *counts) verdict(cell int64, fewer []int) framework.Verdict {
	if cell < 0 {
		return framework.Fits
	}
	for i, d := range c.domainsOf(cell) {
		if d == Missing {
			return unlabelled
		}
		constraint := &c.constraints[i]
		skew := c.podsAt(i, cell) - c.minimums[i].min(constraint.MinDomains)
		if fewer != nil { // below 0 the domain has the least itself, and the pod fits
			skew -= fewer[i]
		}
		if constraint.Self {
			skew++
		}
		if skew > int(constraint.MaxSkew) {
			return skewed
		}
	}
	return framework.Fits
}

// exchanged is the verdict on the row's cell once the pods that are gone have left its
// domains, as a try counts them. It is not known where a pod that came counts: the
// domain may have had the fewest pods of all.
func exchanged(in *framework.Input, row table.Row, gone, came []*object.Pod) (v framework.Verdict, known bool) {
	c := in.State.(*counts)
	cell := c.cells[row]
	if cell < 0 {
		return framework.Fits, true
	}
	c.fewer = append(c.fewer[:0], make([]int, len(c.constraints))...)
	for k := range c.selections {
		s, n := &c.selections[k], 0
		for _, p := range came {
			if p.Namespace == c.namespace && c.matches(s, p, true) {
				return 0, false
			}
		}
		for _, p := range gone {
			if p.Namespace == c.namespace && c.matches(s, p, true) {
				n++
			}
		}
		for _, i := range s.constraints {
			if c.nodes.eligible(i, c.admitted[row]) {
				c.fewer[i] = n
			}
		}
	}
	return c.verdict(cell, c.fewer), true
}

func explain(_ *framework.Input, _ table.Row, v framework.Verdict) decision.Blocker {
	if v == unlabelled {
		return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{reasonLabel}}
	}
	return decision.Blocker{Code: decision.Unschedulable, Reasons: []string{reasonSkew}}
}

package podtopologyspread

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/framework"
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
	if cell < 0 {
		return framework.Fits
	}
	c := in.State.(*counts)
	for i, d := range c.domainsOf(cell) {
		if d == domain.Missing {
			return unlabelled
		}
		constraint := &c.constraints[i]
		skew := c.podsAt(i, cell) - c.minimums[i].min(constraint.MinDomains)
		if constraint.Self {
			skew++
		}
		if skew > int(constraint.MaxSkew) {
			return skewed
		}
	}
	return framework.Fits
}

func explain(_ *framework.Input, _ table.Row, v framework.Verdict) decision.Blocker {
	if v == unlabelled {
		return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{reasonLabel}}
	}
	return decision.Blocker{Code: decision.Unschedulable, Reasons: []string{reasonSkew}}
}

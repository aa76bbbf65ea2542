package interpodaffinity

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/framework"
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
	for i, r := range rows {
		if c.nodes.LocationOf(r) == noNode {
			out[i] = noNode
			continue
		}
		out[i] = int64(c.nodes.LocationOf(r)) << kinds
		for k := range kinds {
			if c.ownOf(r, k) > 0 {
				out[i] |= 1 << k
			}
		}
	}
}

// verdict looks first at the pod's affinity (the pod may be the first that it
// matches), then at its anti-affinity, then at that of the pods on the nodes.
func verdict(in *framework.Input, cell int64) framework.Verdict {
	if cell < 0 {
		return framework.Fits
	}
	c := in.State.(*counts)
	domains := c.nodes.Domains(int32(cell >> kinds))
	has := func(topology int, k kind) bool {
		switch d := domains[topology]; d {
		case domain.Missing:
			return false
		case domain.Own:
			return cell&(1<<k) != 0
		default:
			return c.sums[topology][d.ID()][k] > 0
		}
	}
	first := c.self && c.total[affinity] == 0
	for _, i := range c.by[affinity] {
		if domains[i] == domain.Missing || !first && !has(i, affinity) {
			return affinityNotMet
		}
	}
	for _, i := range c.by[antiAffinity] {
		if has(i, antiAffinity) {
			return antiAffinityNotMet
		}
	}
	for _, i := range c.by[existingAntiAffinity] {
		if has(i, existingAntiAffinity) {
			return existingAntiAffinityNotMet
		}
	}
	return framework.Fits
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

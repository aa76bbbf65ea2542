package interpodaffinity

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
)

const (
	far        framework.Verdict = 1 + iota // not where the pod has to be
	near                                    // where the pod must not be
	keptAway                                // where others do not want it
	reasonFar  = "node(s) didn't match pod affinity rules"
	reasonNear = "node(s) didn't match pod anti-affinity rules"
	reasonKept = "node(s) didn't satisfy existing pods anti-affinity rules"
)

// filterCells writes each row's cell: its place and, below it, a bit for each
// kind that the node itself has any of.
func filterCells(in *framework.Input, rows []table.Row, out []int64) {
	c := in.State.(*counts)
	for i, r := range rows {
		if c.at[r] == noNode {
			out[i] = noNode
			continue
		}
		out[i] = int64(c.at[r]) << kinds
		for k := range kinds {
			if c.ownOf(r, k) > 0 {
				out[i] |= 1 << k
			}
		}
	}
}

// verdict asks first whether the pods are there that the pod has to be with
// (or it is to be the first of them), then what itself does not bear, then who
// does not bear it.
func verdict(in *framework.Input, cell int64) framework.Verdict {
	if cell < 0 {
		return framework.Fits
	}
	c := in.State.(*counts)
	sites := c.places.ids.At(int32(cell >> kinds)).sites
	has := func(topology int, k kind) bool {
		switch s := sites[topology]; s {
		case missing:
			return false
		case own:
			return cell&(1<<k) != 0
		default:
			return c.topologies[topology].domains.At(s)[k] > 0
		}
	}
	first := c.self && c.total[wanted] == 0
	for _, i := range c.by[wanted] {
		if sites[i] == missing || !first && !has(i, wanted) {
			return far
		}
	}
	for _, i := range c.by[unwanted] {
		if has(i, unwanted) {
			return near
		}
	}
	for _, i := range c.by[kept] {
		if has(i, kept) {
			return keptAway
		}
	}
	return framework.Fits
}

func explain(_ *framework.Input, _ table.Row, v framework.Verdict) (decision.Code, []string) {
	switch v {
	case far:
		return decision.UnschedulableAndUnresolvable, []string{reasonFar}
	case near:
		return decision.Unschedulable, []string{reasonNear}
	}
	return decision.Unschedulable, []string{reasonKept}
}

package interpodaffinity

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/framework"
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
	for i, r := range rows {
		out[i] = c.filterCell(r, nil)
	}
}

// filterCell is the row's cell without the pods that have left; nil: none have.
func (c *counts) filterCell(r table.Row, gone *left) int64 {
	if c.nodes.LocationOf(r) == noNode {
		return noNode
	}
	cell := int64(c.nodes.LocationOf(r)) << kinds
	for k := range kinds {
		n := c.ownOf(r, k)
		if gone != nil {
			n -= gone.own[k]
		}
		if n > 0 {
			cell |= 1 << k
		}
	}
	return cell
}

// verdict looks first at the pod's affinity (the pod may be the first that it
// matches), then at its anti-affinity, then at that of the pods on the nodes.
func verdict(in *framework.Input, cell int64) framework.Verdict {
	return in.State.(*counts).verdict(cell, nil)
}

// verdict is that on the cell without the pods that have left; nil: none have.
func (c *counts) verdict(cell int64, gone *left) framework.Verdict {
	if cell < 0 {
		return framework.Fits
	}
	domains := c.nodes.Domains(int32(cell >> kinds))
	has := func(topology int, k kind) bool {
		switch d := domains[topology]; d {
		case domain.Missing:
			return false
		case domain.Own:
			return cell&(1<<k) != 0
		default:
			n := c.sums[topology][d.ID()][k]
			if gone != nil {
				n -= gone.shared[topology][k]
			}
			return n > 0
		}
	}
	total := c.total[affinity]
	if gone != nil {
		total -= gone.total[affinity]
	}
	first := c.self && total == 0
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

// left is what pods that have left a row counted for: on its node itself, in its other
// domains by topology, and in all.
type left struct {
	own, total sums
	shared     []sums
}

// withoutPods is the verdict on the row's cell less what the pods count for.
func withoutPods(in *framework.Input, row table.Row, gone []*object.Pod) (v framework.Verdict, known bool) {
	c := in.State.(*counts)
	return c.verdict(c.filterCell(row, c.leave(in.Table, row, gone)), &c.left), true
}

// leave counts what leaves the row with the pods. It is valid until the next call.
func (c *counts) leave(t *table.Table, row table.Row, pods []*object.Pod) *left {
	l := &c.left
	l.own, l.total, l.shared = sums{}, sums{}, append(l.shared[:0], make([]sums, len(c.sums))...)
	at := c.nodes.LocationOf(row)
	if at == noNode {
		return l
	}
	domains := c.nodes.Domains(at)
	for _, p := range pods {
		for _, s := range c.sharesOfPod(t, p) {
			switch domains[s.topology] {
			case domain.Missing:
				continue
			case domain.Own:
				l.own[s.kind] += s.n
			default:
				l.shared[s.topology][s.kind] += s.n
			}
			l.total[s.kind] += s.n
		}
	}
	return l
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

package machine

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/framework"
)

// tryPlacements tries the group in each placement that there is for it, and leaves it as it
// was in the best of those in which it fits. Where it fits in none, what its pods are told is
// what they were told in the first.
func (m *Machine) tryPlacements(c *groupCycle) {
	placements, status := m.generatePlacements(c)
	if c.placements = len(placements); status != nil {
		c.status = status
		return
	}
	var tries, fitting []*groupTry
	for i := range placements {
		c.groupTry = m.newTry(c, &placements[i])
		m.tryGroup(c)
		m.undoGroup(c)
		try := c.groupTry
		switch tries = append(tries, &try); {
		case c.status != nil && c.status.Code == decision.Error:
			return
		case c.status == nil || c.preempts:
			fitting = append(fitting, &try)
		}
	}
	switch len(fitting) {
	case 0:
		c.groupTry = *tries[0]
		c.status = &decision.Status{Code: decision.Unschedulable, Reasons: []string{
			fmt.Sprintf("0/%d placements are available, first placement status: %v", len(placements), errGroupUnschedulable)}}
	case 1:
		c.groupTry = *fitting[0]
	default:
		best, status := m.bestPlacement(c, fitting)
		if status != nil {
			c.groupTry = m.newTry(c, nil)
			c.status = status
			return
		}
		c.groupTry = *fitting[best]
	}
}

// newTry has an attempt for each pod of the group, of which nothing is known.
func (m *Machine) newTry(c *groupCycle, p *framework.Placement) groupTry {
	try := groupTry{placement: p}
	nodes := m.table.Live()
	if p != nil {
		nodes = len(p.Rows)
	}
	for _, mb := range c.members {
		try.members = append(try.members, m.newMember(mb.state, nodes))
	}
	return try
}

func (m *Machine) placementCall(c *groupCycle) *framework.PlacementCall {
	call := &framework.PlacementCall{Table: m.table, Group: c.name}
	for _, mb := range c.members {
		call.Pods = append(call.Pods, mb.pod)
	}
	return call
}

// generatePlacements asks the plugin that generates placements; without one, all nodes are
// the only placement.
func (m *Machine) generatePlacements(c *groupCycle) (placements []framework.Placement, status *decision.Status) {
	var all framework.Placement
	for _, r := range m.table.All() {
		if m.table.Node(r) != nil {
			all.Rows = append(all.Rows, r)
		}
	}
	pl := c.profile.PlacementGenerate
	if pl == nil {
		return []framework.Placement{all}, nil
	}
	err := m.guard("GeneratePlacements", pl.Name, func() { placements, status = pl.GeneratePlacements(m.placementCall(c), all) })
	switch {
	case err != nil:
		status = &decision.Status{Code: decision.Error, Err: err}
	case status == nil && len(placements) == 0:
		status = &decision.Status{Code: decision.Unschedulable, Reasons: []string{"no feasible placements found"}}
	}
	return placements, status
}

// bestPlacement is the place in the list of the try whose placement has the highest score;
// among equals a draw decides.
func (m *Machine) bestPlacement(c *groupCycle, tries []*groupTry) (best int, status *decision.Status) {
	assignments := make([]*framework.PodGroupAssignments, len(tries))
	for i, try := range tries {
		assignments[i] = &framework.PodGroupAssignments{Placement: *try.placement}
		for _, mb := range try.members {
			if mb.fits || mb.preempts {
				assignments[i].ProposedAssignments = append(assignments[i].ProposedAssignments, framework.Assignment{Pod: mb.pod, Row: mb.row})
			}
		}
	}
	totals := make([]int64, len(tries))
	for _, s := range c.profile.PlacementScore {
		if err := m.guard("ScorePlacement", s.Name, func() { status = addPlacementScores(m.placementCall(c), s.Plugin, s.Weight, assignments, totals) }); err != nil {
			status = &decision.Status{Code: decision.Error, Err: err}
		}
		if status != nil {
			return 0, status
		}
	}
	var tied []int
	for i, total := range totals {
		if len(tied) > 0 && total > totals[tied[0]] {
			tied = tied[:0]
		}
		if len(tied) == 0 || total == totals[tied[0]] {
			tied = append(tied, i)
		}
	}
	first := c.members[0]
	return tied[draw.Number(draw.Seed(m.options.Seed, first.pod.UID, first.record.Attempt), len(tied))], nil
}

// addPlacementScores adds what the plugin says of the placements, times its weight.
func addPlacementScores(call *framework.PlacementCall, pl *framework.Plugin, weight int64, of []*framework.PodGroupAssignments, totals []int64) *decision.Status {
	scores := make([]int64, len(of))
	for i, a := range of {
		score, s := pl.ScorePlacement(call, a)
		if s != nil {
			return failedPlacements("running PlacementScore plugins: plugin %q failed with: %w", pl.Name, s.Err)
		}
		scores[i] = score
	}
	if pl.NormalizePlacementScore != nil {
		if s := pl.NormalizePlacementScore(call, of, scores); s != nil {
			return failedPlacements("running NormalizePlacementScore on PlacementScore plugins: plugin %q failed with: %w", pl.Name, s.Err)
		}
	}
	for i, score := range scores {
		if score < 0 || score > 100 {
			return failedPlacements("applying score defaultWeights on PlacementScore plugins: plugin %q returns an invalid score %v, it should in the range of [0, 100] after normalizing", pl.Name, score)
		}
		totals[i] += score * weight
	}
	return nil
}

func failedPlacements(format string, args ...any) *decision.Status {
	return &decision.Status{Code: decision.Error, Err: fmt.Errorf(format, args...)}
}

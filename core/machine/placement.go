package machine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/framework"
)

// mostTries bounds the decisions in one cycle of a pod group, pods times placements,
// since a cycle is one step.
const mostTries = 100_000

// tryPlacements tries the group in its placements; if they are many, only in those of window. It
// leaves in c the results of the best placement in which the group fits, or of the first one if it
// fits in none. It sets c.partial if placements were left out. It returns the placements that it
// tried; none if a plugin rejected the group or failed, with the reason in c.status.
func (l *podGroups) tryPlacements(c *groupCycle) (tried []*framework.Placement) {
	placements, status := l.generatePlacements(c)
	if status != nil {
		c.status = status
		return nil
	}
	all := len(placements)
	placements = window(placements, len(c.members), c.members[0].record.Attempt)
	c.partial = c.partial || len(placements) < all
	chosen, fits := &placements[0], false
	if c.placements = len(placements); c.placements > 1 {
		if chosen, fits = l.choosePlacement(c, placements); chosen == nil {
			return nil
		}
	}
	c.placements = 1
	l.tryPlacement(c, chosen) // what is tried last is what hosted plugins know of
	if !fits && c.status != nil && c.status.Code != decision.Error {
		c.status = unschedulableGroup(fmt.Sprintf("0/%d placements are available, first placement status: %v", len(placements), errorOf(c.status)))
	}
	for i := range placements {
		tried = append(tried, &placements[i])
	}
	return tried
}

// choosePlacement tries all placements, of which there must be one. It returns the best of those in
// which the group fits, and true. If it fits in none, it returns the first, for the report, and
// false. If a plugin failed, it returns nil, and c.status is the error. Otherwise c holds the try of
// the last placement, not of the chosen one.
func (l *podGroups) choosePlacement(c *groupCycle, placements []framework.Placement) (chosen *framework.Placement, fits bool) {
	var fitting []*framework.PodGroupAssignments
	for i := range placements {
		l.tryPlacement(c, &placements[i])
		if c.status != nil && c.status.Code == decision.Error {
			return nil, false
		}
		if c.status == nil {
			fitting = append(fitting, c.assignments())
		}
	}
	if len(fitting) == 0 {
		return &placements[0], false
	}
	best, status := l.bestPlacement(c, fitting)
	if status != nil {
		c.groupTry = l.newTry(c, nil)
		c.status = status
		return nil, false
	}
	return &fitting[best].Placement, true
}

// window returns the placements that the attempt (1 is the first) tries, at least two and
// otherwise at most mostTries / pods of them, so that no attempt blocks the loop. The next
// attempt begins where this one ends.
func window(placements []framework.Placement, pods, attempt int) []framework.Placement {
	return nextPlacements(placements, max(2, mostTries/pods), attempt)
}

// nextPlacements returns n of the placements for the attempt (1 is the first): those after the n of
// the attempt before, beginning anew after the last; all if there are no more than n.
func nextPlacements[P any](placements []P, n, attempt int) []P {
	if n >= len(placements) {
		return placements
	}
	from := (attempt - 1) * n % len(placements)
	return slices.Concat(placements[from:], placements[:from])[:n]
}

// tryPlacement assumes the group's pods on nodes of the placement, as far as they fit, and
// removes them again. The results are left in c, to be compared with other placements.
func (l *podGroups) tryPlacement(c *groupCycle, p *framework.Placement) {
	c.groupTry = l.newTry(c, p)
	l.tryGroup(c)
	l.undoGroup(c)
}

// assignments returns the placement of the try, with the node that was found for each pod that
// fits.
func (t *groupTry) assignments() *framework.PodGroupAssignments {
	a := &framework.PodGroupAssignments{Placement: *t.placement}
	for _, mb := range t.members {
		if mb.fits {
			a.ProposedAssignments = append(a.ProposedAssignments, framework.Assignment{Pod: mb.pod, Row: mb.row})
		}
	}
	return a
}

// newTry returns an empty try of the placement (nil: of all nodes), with a new attempt
// for each pod of the group.
func (l *podGroups) newTry(c *groupCycle, p *framework.Placement) groupTry {
	try := groupTry{placement: p}
	nodes := l.table.Live()
	if p != nil {
		nodes = len(p.Rows)
	}
	for _, mb := range c.members {
		try.members = append(try.members, l.newMember(mb.state, nodes))
	}
	return try
}

// placementCall returns the argument that plugins get to generate and score placements: the group's
// name and pods, and the table.
func (l *podGroups) placementCall(c *groupCycle) *framework.PlacementCall {
	call := &framework.PlacementCall{Table: l.table, Group: c.name}
	for _, mb := range c.members {
		call.Pods = append(call.Pods, mb.pod)
	}
	return call
}

// generatePlacements returns the placements of the PlacementGenerate plugin, at least
// one if the status is nil. Without a plugin, all nodes are the only placement.
func (l *podGroups) generatePlacements(c *groupCycle) (placements []framework.Placement, status *decision.Status) {
	var all framework.Placement
	for _, r := range l.table.All() {
		if l.table.Node(r) != nil {
			all.Rows = append(all.Rows, r)
		}
	}
	pl := c.profile.PlacementGenerate
	if pl == nil {
		return []framework.Placement{all}, nil
	}
	err := l.guard.run("GeneratePlacements", pl.Name, func() { placements, status = pl.PodGroup.GeneratePlacements(l.placementCall(c), all) })
	switch {
	case err != nil:
		status = &decision.Status{Code: decision.Error, Err: err}
	case status == nil && len(placements) == 0:
		status = &decision.Status{Code: decision.Unschedulable, Reasons: []string{"no feasible placements found"}}
	}
	return placements, status
}

// bestPlacement returns the index of the placement with the highest score of the
// PlacementScore plugins; of equal ones a pseudo-random one. The status is a plugin's
// error.
func (l *podGroups) bestPlacement(c *groupCycle, fitting []*framework.PodGroupAssignments) (best int, status *decision.Status) {
	if len(fitting) == 1 {
		return 0, nil
	}
	totals := make([]int64, len(fitting))
	for _, s := range c.profile.PlacementScore {
		if err := l.guard.run("ScorePlacement", s.Name, func() { status = addPlacementScores(l.placementCall(c), s.Plugin, s.Weight, fitting, totals) }); err != nil {
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
	return tied[draw.Number(draw.Seed(l.options.Seed, first.pod.UID, first.record.Attempt), len(tied))], nil
}

// addPlacementScores adds the plugin's normalised score of each placement, times the weight, to
// totals. It returns an error status if the plugin fails or a score is not from 0 to 100.
func addPlacementScores(call *framework.PlacementCall, pl *framework.Plugin, weight int64, of []*framework.PodGroupAssignments, totals []int64) *decision.Status {
	scores := make([]int64, len(of))
	for i, a := range of {
		score, s := pl.PodGroup.ScorePlacement(call, a)
		if s != nil {
			return decision.Failed("running PlacementScore plugins: plugin %q failed with: %w", pl.Name, errorOf(s))
		}
		scores[i] = score
	}
	if pl.PodGroup.NormalizePlacementScore != nil {
		if s := pl.PodGroup.NormalizePlacementScore(call, of, scores); s != nil {
			return decision.Failed("running NormalizePlacementScore on PlacementScore plugins: plugin %q failed with: %w", pl.Name, errorOf(s))
		}
	}
	for i, score := range scores {
		if score < 0 || score > 100 {
			return decision.Failed("applying score defaultWeights on PlacementScore plugins: plugin %q returns an invalid score %v, it should in the range of [0, 100] after normalizing", pl.Name, score)
		}
		totals[i] += score * weight
	}
	return nil
}

// errorOf returns the status's error, made of its reasons if it has none.
func errorOf(s *decision.Status) error {
	if s.Err != nil {
		return s.Err
	}
	return errors.New(explain.Status(s))
}

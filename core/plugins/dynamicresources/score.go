package dynamicresources

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// scored reports whether the allocation of the claim affects the score: one of its
// requests lists alternatives.
func scored(c *resourcev1.ResourceClaim) bool {
	for i := range c.Spec.Devices.Requests {
		if len(c.Spec.Devices.Requests[i].FirstAvailable) > 0 {
			return true
		}
	}
	return false
}

// scores reports whether nodes are scored for the pod: it has claims to be allocated, and one of
// its claims lists alternatives.
func (pl *plugin) scores(s *state) bool {
	return pl.features.DRAPrioritizedList && len(s.open) > 0 &&
		slices.ContainsFunc(s.claims, func(c *object.ResourceClaim) bool { return scored(c.API) })
}

// preScore skips pods that have no claim to be allocated, or whose claims list no alternatives.
// Else it returns the state, which refers to the scores that are kept for such claims.
func (pl *plugin) preScore(t *table.Table, p *object.Pod) framework.PreScoreResult {
	s, status := pl.prepare(t, p)
	if status != nil || s == nil || !pl.scores(s) {
		return framework.PreScoreResult{Skip: true}
	}
	s.known = pl.answers.of(t, pl.sign(nil, t, p))
	s.known.scores.makeRoom(t.Rows())
	return framework.PreScoreResult{State: s}
}

// score writes the raw score of each row: higher where claims get the alternatives that they list
// first. It is 0 for a row without a node, and where the claims cannot be allocated.
func (pl *plugin) score(in *framework.Input, rows []table.Row, out []int64) {
	s := in.State.(*state)
	for i, row := range rows {
		out[i] = 0
		n := in.Table.Node(row)
		if n == nil {
			continue
		}
		if known, ok := s.known.scores.of(in.Table, row); ok {
			out[i] = known
		} else if v, ok := s.known.verdicts.of(in.Table, row); !ok || v == int64(framework.Fits) || v == int64(unavailable) {
			out[i] = pl.scoreOn(in, n)
			s.known.scores.keep(in.Table, row, out[i])
		}
	}
}

// scoreOn runs the allocator on the node and returns the node's raw score; 0 if the claims cannot
// be allocated there.
func (pl *plugin) scoreOn(in *framework.Input, n *object.Node) int64 {
	s := in.State.(*state)
	open, _ := s.openOn(n)
	got, err := pl.allocate(in.Table, n, open, s.shared)
	if err != nil || got == nil {
		return 0
	}
	return s.settled() + s.preference(got)
}

// preference returns what the open claims add to the raw score of a node on which they
// get these allocations.
func (s *state) preference(got []resourcev1.AllocationResult) (score int64) {
	for i, c := range s.open {
		score += preference(c, &got[i])
	}
	return score
}

// settled returns what the allocated claims add to the raw score of every node.
func (s *state) settled() (score int64) {
	for _, c := range s.claims {
		if a := c.Allocation(); a != nil {
			score += preference(c.API, a)
		}
	}
	return score
}

// preference returns the raw score of the allocation a of claim c: for each request with
// alternatives, 8 if it got the first alternative in its list, 7 for the second, and so on.
func preference(c *resourcev1.ResourceClaim, a *resourcev1.AllocationResult) (sum int64) {
	taken := map[string]bool{}
	for i := range a.Devices.Results {
		taken[a.Devices.Results[i].Request] = true
	}
	for i := range c.Spec.Devices.Requests {
		r := &c.Spec.Devices.Requests[i]
		if r.Exactly != nil {
			continue
		}
		for j := range r.FirstAvailable {
			if taken[resourceclaim.CreateSubRequestRef(r.Name, r.FirstAvailable[j].Name)] {
				sum += int64(resourcev1.FirstAvailableDeviceRequestMaxSize - j)
			}
		}
	}
	return sum
}

// normalize scales raw scores, from 0 up, so that the highest becomes 100. All stay 0 if that is 0.
func normalize(raw, _, highest int64) int64 {
	if highest == 0 {
		return 0
	}
	return 100 * raw / highest
}

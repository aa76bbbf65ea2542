package dynamicresources

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// scored tells whether it matters to the score what the claim gets: it lists
// alternatives.
func scored(c *resourcev1.ResourceClaim) bool {
	for i := range c.Spec.Devices.Requests {
		if len(c.Spec.Devices.Requests[i].FirstAvailable) > 0 {
			return true
		}
	}
	return false
}

// preScore skips pods that get the same everywhere, or have got everything.
func (pl *plugin) preScore(t *table.Table, p *object.Pod) framework.PreScoreResult {
	s, status := pl.prepare(t, p)
	if status != nil || s == nil || len(s.open) == 0 || !pl.features.DRAPrioritizedList {
		return framework.PreScoreResult{Skip: true}
	}
	for _, c := range s.claims {
		if scored(c.API) {
			s.known = pl.answers.of(t, pl.sign(nil, t, p))
			in := &framework.Input{Table: t, Pod: p, State: s}
			s.known.scores.refresh(t, func(n *object.Node) (int64, bool, bool) { return pl.scoreOn(in, n), true, false })
			return framework.PreScoreResult{State: s}
		}
	}
	return framework.PreScoreResult{Skip: true}
}

// score favours nodes where claims get what they list first.
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
			continue
		}
		out[i] = pl.scoreOn(in, n)
	}
}

// scoreOn is the node's score; 0 where it is not feasible.
func (pl *plugin) scoreOn(in *framework.Input, n *object.Node) (score int64) {
	s := in.State.(*state)
	open, _ := s.openOn(n)
	got, err := pl.allocate(in.Table, n, open, s.shared)
	if err != nil || got == nil {
		return 0
	}
	for _, c := range s.claims {
		a := c.Allocation()
		if a == nil {
			a, got = &got[0], got[1:]
		}
		score += preference(c.API, a)
	}
	return score
}

// preference is, of each request with alternatives, how early in its list the
// one stands that was taken.
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

func normalize(raw, _, highest int64) int64 {
	if highest == 0 {
		return 0
	}
	return 100 * raw / highest
}

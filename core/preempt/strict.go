package preempt

import (
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// broken returns why the victims may not go: the first budget that does not allow all of them
// to go, if budgets are strict; nil if they may. Only the victims count, where kube-scheduler's
// number of violations also counts pods that stay.
func broken(of *framework.Disruption, victims []*object.Pod) *decision.Blocker {
	if !of.Strict {
		return nil
	}
	used := newBudgetUse(of.Budgets)
	for _, p := range victims {
		if b := used.charge(p); b != nil {
			return &decision.Blocker{Plugin: framework.PreemptionBudgets, Code: decision.Unschedulable,
				Reasons: []string{fmt.Sprintf("disruption budget %s/%s allows no more disruptions", b.Namespace, b.Name)}}
		}
	}
	return nil
}

// accept returns the plan, or nil and the strict budget that keeps victims as the reason.
func (c *call) accept(p *Plan) (*Plan, *decision.Blocker) {
	if b := broken(&c.Disruption, p.Victims); b != nil {
		return nil, b
	}
	return p, nil
}

// unguarded returns the candidate victims for a search that spares strict budgets, sorted by
// importance. It leaves out a pod, or a pod group that is evicted as a whole, whose eviction
// violates a budget; more important candidates use up the budget first. A gang that keeps its
// minimum is never left out, because its other pods may go.
func (r *unitRules) unguarded(c *framework.PodGroupPostFilterCall) []*unit {
	units := r.together(lowerUnits(c, *r))
	splitUnits(units, c.Budgets)
	return slices.DeleteFunc(units, func(u *unit) bool { return u.gang == nil && guarded(u) })
}

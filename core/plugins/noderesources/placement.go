package noderesources

import (
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/resource"
)

// scorePlacement returns the plugin's functions for pod groups. The score of a placement is the
// percentage of its nodes' resources that the pods there use, with those of the group. It is a
// weighted mean over the resources. Fuller is better, whatever strategy nodes are scored by.
// Resources that the group does not request count only if they are CPU, memory or ephemeral
// storage.
func scorePlacement(resources []configv1.ResourceSpec) *framework.PodGroupPlugin {
	return &framework.PodGroupPlugin{ScorePlacement: func(c *framework.PlacementCall, a *framework.PodGroupAssignments) (int64, *decision.Status) {
		var sum, weights int64
		for _, w := range newScorer(&configv1.ScoringStrategy{Type: configv1.MostAllocated, Resources: resources}, nil).resources {
			var request int64
			for i := range a.ProposedAssignments {
				request = resource.Add(request, a.ProposedAssignments[i].Pod.Demand.Scoring.Of(w.name))
			}
			id, known := c.Table.Column(w.name)
			if !known || request == 0 && !basic(w.name) {
				continue
			}
			var offered int64
			allocatable, used := c.Table.Allocatable(id), usedFor(c.Table, id)
			for _, r := range a.Rows {
				if allocatable[r] > 0 {
					offered, request = resource.Add(offered, allocatable[r]), resource.Add(request, used[r])
				}
			}
			if offered > 0 {
				sum, weights = sum+w.weight*percent(min(request, offered), offered), weights+w.weight
			}
		}
		if weights == 0 {
			return 0, nil
		}
		return sum / weights, nil
	}}
}

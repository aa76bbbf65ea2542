package podgrouppodscount

import (
	"errors"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/plugins/names"
)

// New returns the plugin.
func New() framework.Plugin {
	return framework.Plugin{
		Name: names.PodGroupPodsCount,
		PodGroup: &framework.PodGroupPlugin{
			ScorePlacement: scorePlacement, NormalizePlacementScore: normalize,
		},
	}
}

// scorePlacement returns the number of the group's pods that have a node: in this placement or from
// before. Pods from before count so that one pod more or less makes little difference to a large
// group.
func scorePlacement(c *framework.PlacementCall, a *framework.PodGroupAssignments) (int64, *decision.Status) {
	return int64(c.Table.Groups().Named(c.Group).Scheduled() + len(a.ProposedAssignments)), nil
}

// normalize scales the scores in place so that the highest becomes 100. It fails if all are 0.
func normalize(_ *framework.PlacementCall, _ []*framework.PodGroupAssignments, scores []int64) *decision.Status {
	most := slices.Max(scores)
	if most == 0 {
		return &decision.Status{Code: decision.Error, Err: errors.New("no pods from pod group are assigned to any of the candidate placements")}
	}
	for i := range scores {
		scores[i] = scores[i] * 100 / most
	}
	return nil
}

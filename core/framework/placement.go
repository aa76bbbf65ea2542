package framework

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Placement is a set of nodes in which the pods of a pod group may be placed together.
type Placement struct {
	// Name is unique among the placements of the group.
	Name string
	// Rows are its nodes, ascending.
	Rows []table.Row
	// Shown is the placement as a hosted plugin generated it, nil for another.
	Shown any
}

// PlacementCall is the input of plugins about placements: the group whose cycle is under
// way, and its pods that are to be placed.
type PlacementCall struct {
	Table *table.Table
	Group types.NamespacedName
	Pods  []*object.Pod
}

// Assignment is the node that was found for a pod of the group in a placement.
type Assignment struct {
	Pod *object.Pod
	Row table.Row
}

// PodGroupAssignments are the nodes that were found for the pods of the group in a placement.
type PodGroupAssignments struct {
	Placement
	ProposedAssignments []Assignment
}

// PodGroupPlugin holds the extension points for pod groups, each nil if the plugin does not
// implement it.
type PodGroupPlugin struct {
	// PostFilter runs for a group that does not fit (PodGroupPostFilterPlugin). Victims are
	// found for the group as a whole.
	PostFilter func(c *PodGroupPostFilterCall) PodGroupPostFilterResult
	// GeneratePlacements returns sets of nodes, out of the parent's nodes; all pods of
	// the group are placed within one of the sets (PlacementGeneratePlugin). It may
	// reject the group, or fail.
	GeneratePlacements func(c *PlacementCall, parent Placement) ([]Placement, *decision.Status)
	// ScorePlacement rates a placement in which the group fits (PlacementScorePlugin).
	// Scores are 0 to 100 once they are normalised. A status is a failure.
	ScorePlacement func(c *PlacementCall, a *PodGroupAssignments) (int64, *decision.Status)
	// NormalizePlacementScore changes the scores of all placements, which are in the order
	// of the assignments; nil: they stay as they are.
	NormalizePlacementScore func(c *PlacementCall, all []*PodGroupAssignments, scores []int64) *decision.Status
}

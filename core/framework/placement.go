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
	// Shown is the placement in the form in which a hosted plugin generated it; nil for
	// other placements.
	Shown any
}

// PlacementCall is the input of plugins about placements: the pod group that is being
// scheduled, and those of its pods that are to be placed.
type PlacementCall struct {
	Table *table.Table
	Group types.NamespacedName
	Pods  []*object.Pod
}

// Assignment is the node that was found for a pod of the group, within a placement.
type Assignment struct {
	Pod *object.Pod
	Row table.Row
}

// PodGroupAssignments is a placement with the node that was found in it for each pod of the
// group.
type PodGroupAssignments struct {
	Placement
	ProposedAssignments []Assignment
}

// PlacementProgress is how far the try of a pod group in a placement has come.
type PlacementProgress struct {
	Remaining int // pods that were not tried yet
	Tried     int // pods that were tried
	Scheduled int // pods that have a node, in the try or from before
}

// PodGroupPlugin holds the extension points for pod groups, each nil if the plugin does not
// implement it.
type PodGroupPlugin struct {
	// PostFilter runs for a pod group that does not fit, and names pods to evict for the
	// group as a whole (PodGroupPostFilterPlugin).
	PostFilter func(c *PodGroupPostFilterCall) PodGroupPostFilterResult
	// PlacementFeasible returns nil if the group meets its constraints after so much of a
	// try, Wait if it may with the pods that remain, and Unschedulable if it cannot.
	PlacementFeasible func(t *table.Table, g *object.PodGroup, p PlacementProgress) *decision.Status
	// Deallocate is called after a pod of a group was tried. It returns writes that may help the
	// pod, which are carried out if the group is not placed. It belongs to PodGroupPostFilter.
	Deallocate func(c *PostFilterCall) []Write
	// GeneratePlacements returns sets of the parent's nodes; all pods of the group are to
	// be placed within one of the sets (PlacementGeneratePlugin). A status rejects the
	// group, or is a failure.
	GeneratePlacements func(c *PlacementCall, parent Placement) ([]Placement, *decision.Status)
	// ScorePlacement rates a placement in which the group fits (PlacementScorePlugin).
	// Scores are 0 to 100 once they are normalised. A status is a failure.
	ScorePlacement func(c *PlacementCall, a *PodGroupAssignments) (int64, *decision.Status)
	// NormalizePlacementScore, when set, changes the scores of all placements in place;
	// scores[i] is that of all[i]. A status is a failure.
	NormalizePlacementScore func(c *PlacementCall, all []*PodGroupAssignments, scores []int64) *decision.Status
}

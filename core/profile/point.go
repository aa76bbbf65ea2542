package profile

import "github.com/berth-scheduler/berth/core/framework"

// Point is an extension point, numbered in about the order in which a pod meets them.
type Point uint8

const (
	PreEnqueue Point = iota
	QueueSort
	PreFilter
	Filter
	PostFilter
	PreScore
	Score
	Reserve
	Permit
	PreBind
	Bind
	PostBind
	PlacementGenerate
	PlacementScore
	PodGroupPostFilter

	// Points is the number of extension points.
	Points
)

// pointNames are Kubernetes' names of the points.
var pointNames = [Points]string{"PreEnqueue", "QueueSort", "PreFilter", "Filter", "PostFilter", "PreScore", "Score",
	"Reserve", "Permit", "PreBind", "Bind", "PostBind", "PlacementGenerate", "PlacementScore", "PodGroupPostFilter"}

// String returns Kubernetes' name of the point.
func (pt Point) String() string { return pointNames[pt] }

// kind returns what kube-scheduler calls the plugins of the point in errors.
func (pt Point) kind() string { return pt.String() + "Plugin" }

// implementedBy reports whether the plugin implements the extension point.
func (pt Point) implementedBy(p *framework.Plugin) bool {
	switch pt {
	case PreEnqueue:
		return p.PreEnqueue != nil
	case QueueSort:
		return p.Less != nil
	case PreFilter:
		return p.PreFilter != nil
	case Filter:
		return p.Filter != nil || p.CellFilter != nil
	case PostFilter:
		return p.PostFilter != nil
	case PreScore:
		return p.PreScore != nil || p.PreScoresRows()
	case Score:
		return p.Score != nil || p.CellScore != nil || p.ScoresRows()
	case Reserve:
		return p.Reserve != nil || p.Unreserve != nil || p.RevertWrites != nil
	case Permit:
		return p.Permit != nil
	case PreBind:
		return p.PreBind != nil || p.Blocking().PreBind
	case Bind:
		return p.Bind != nil || p.Blocking().Bind
	case PostBind:
		return p.PostBind != nil || p.Blocking().PostBind
	case PlacementGenerate:
		return p.PodGroup != nil && p.PodGroup.GeneratePlacements != nil
	case PlacementScore:
		return p.PodGroup != nil && p.PodGroup.ScorePlacement != nil
	case PodGroupPostFilter:
		return p.PodGroup != nil && p.PodGroup.PostFilter != nil
	}
	return false
}

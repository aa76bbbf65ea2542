package framework

import (
	"time"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// EventResource is the kind of object that an event is about.
type EventResource uint8

const (
	// AssignedPod is a pod that has a node (or is assumed on one).
	AssignedPod EventResource = iota
	// UnscheduledPod is a pod that waits to be scheduled: the rejected pod itself
	// or another.
	UnscheduledPod
	Node
	Namespace
	// SelectorOwner is a Service or a controller.
	SelectorOwner
	// HostedObject is an object that only hosted plugins know (Event.HostedResource).
	HostedObject
	// WildCard stands for all of them (the periodic flush).
	WildCard
	// The kinds of package object follow, in its order.
	firstKind
)

// NumEventResources is how many event resources there are.
const NumEventResources = int(firstKind) + int(object.Kinds)

// ResourceOf returns the event resource of objects of a kind.
func ResourceOf(k object.Kind) EventResource { return firstKind + EventResource(k) }

// Kind returns the kind of the objects; false for pods, nodes and the other
// resources that package object has no Kind for.
func (r EventResource) Kind() (object.Kind, bool) { return object.Kind(r - firstKind), r >= firstKind }

// ActionType is a set of things that happened to an object.
type ActionType uint32

const (
	Add ActionType = 1 << iota
	Delete
	UpdateNodeAllocatable
	UpdateNodeLabel
	UpdateNodeTaint // spec.unschedulable going false is one, too
	UpdateNodeCondition
	UpdateNodeAnnotation
	UpdateNodeDeclaredFeature // status.declaredFeatures
	UpdatePodLabel
	UpdatePodScaleDown
	UpdatePodSchedulingGatesEliminated
	UpdatePodToleration
	UpdatePodGeneratedResourceClaim // the claims generated for it, in its status
	UpdateNamespaceLabel
	UpdateSelector
	// UpdatePodTerminating: the pod is on its way out, metadata.deletionTimestamp
	// is set.
	UpdatePodTerminating
	// UpdateOther is any update that is none of the above. Objects of a Kind
	// know no other.
	UpdateOther

	UpdateNode = UpdateNodeAllocatable | UpdateNodeLabel | UpdateNodeTaint | UpdateNodeCondition | UpdateNodeAnnotation | UpdateNodeDeclaredFeature
	UpdatePod  = UpdatePodLabel | UpdatePodScaleDown | UpdatePodSchedulingGatesEliminated | UpdatePodToleration | UpdatePodGeneratedResourceClaim | UpdatePodTerminating | UpdateOther
	All        = ActionType(1<<32 - 1)
)

// Event is a change in the cluster, as queueing hints see it. Old values are
// nil on Add, new ones on Delete; a namespace that is not there has no labels,
// and is never nil.
type Event struct {
	Resource                           EventResource
	ActionType                         ActionType
	OldNode, NewNode                   *object.Node
	OldPod, NewPod                     *object.Pod
	OldNamespace, NewNamespace         *object.Namespace
	OldSelectorOwner, NewSelectorOwner *object.SelectorOwner
	OldObject, NewObject               object.Object // of a Kind
	HostedResource                     string        // of HostedObject
	OldHostedObject, NewHostedObject   any
	// Table is the cluster as it stands when a hint is asked about a node; hints
	// about anything else do without.
	Table *table.Table
}

// ClusterEventWithHint names events that may help a pod that the plugin rejected: those
// about the resource that have one of the action types. The hint, when set, looks closer;
// true is upstream's Queue, false QueueSkip. A hint may return true for an event that
// does not help, never false for one that does. It may read of the rejected pod only what
// object.Pod.AppendTemplate appends, and whether the event is about that pod: it is
// called once for all pods that agree in that.
type ClusterEventWithHint struct {
	Resource       EventResource
	ActionType     ActionType
	QueueingHintFn func(rejected *object.Pod, e *Event) bool
	// Names, when set, lists the objects of the resource, a Kind, that the pod names in
	// its namespace: an event about another one does not help it, whatever the hint says.
	Names func(rejected *object.Pod) []string
}

// Matches reports whether the event has the resource and one of the action types. The
// hint is not called.
func (w *ClusterEventWithHint) Matches(e *Event) bool {
	return (w.Resource == e.Resource || w.Resource == WildCard) && w.ActionType&e.ActionType != 0
}

// QueuedPodInfo is a pod in the queue, as QueueSort plugins see it.
type QueuedPodInfo struct {
	Pod *object.Pod
	// Timestamp is when the pod last entered the queue.
	Timestamp time.Time
	// FirstActive is when the pod became active for the first time; zero before.
	FirstActive time.Time
	// Tries counts the pod's attempts; the one in flight is included.
	Tries int
	// Sequence numbers the entries into the queue; it breaks ties of Less.
	Sequence uint64
}

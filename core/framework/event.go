package framework

import (
	"math/bits"
	"strconv"
	"time"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// EventResource is the kind of object that an event is about: one of the constants, or an
// object.Kind (ResourceOf).
type EventResource uint8

const (
	// AssignedPod is a pod that has a node (or is assumed on one).
	AssignedPod EventResource = iota
	// UnscheduledPod is a pod without a node other than the rejected one.
	UnscheduledPod
	// TargetPod is the rejected pod itself; only updates are about it.
	TargetPod
	Node
	Namespace
	// SelectorOwner is a Service or a controller such as a ReplicaSet.
	SelectorOwner
	// HostedObject is an object that only hosted plugins know (Event.HostedResource).
	HostedObject
	// WildCard stands for all of them; an event on it moves every pod.
	WildCard
	// The kinds of package object follow, in its order.
	firstKind
)

// NumEventResources is one more than the highest event resource.
const NumEventResources = int(firstKind) + int(object.Kinds)

// ResourceOf returns the event resource for objects of the kind, as plugins register for
// it.
func ResourceOf(k object.Kind) EventResource { return firstKind + EventResource(k) }

// Kind returns the kind of the objects that events on the resource are about; false for
// pods, nodes and the other resources that have a constant here, as these are no Kinds.
func (r EventResource) Kind() (object.Kind, bool) { return object.Kind(r - firstKind), r >= firstKind }

// ActionType is a set of changes of an object, as bits.
type ActionType uint32

const (
	Add ActionType = 1 << iota
	Delete
	UpdateNodeAllocatable // of resources, or the number of pods
	UpdateNodeLabel
	UpdateNodeTaint // spec.unschedulable going false is one, too
	UpdateNodeCondition
	UpdateNodeAnnotation
	UpdateNodeDeclaredFeature // status.declaredFeatures
	UpdatePodLabel
	UpdatePodScaleDown                 // it requests less
	UpdatePodScaleUp                   // it requests more
	UpdatePodSchedulingGatesEliminated // its last scheduling gate was removed
	UpdatePodToleration
	UpdatePodGeneratedResourceClaim // the claims generated for it, in its status
	UpdateNamespaceLabel
	UpdateSelector // of a SelectorOwner
	// UpdatePodTerminating means that metadata.deletionTimestamp was set.
	UpdatePodTerminating
	// UpdateOther is any update that is none of the above. For objects of a Kind it is the
	// only update.
	UpdateOther
	// UpdateNodePreemptionPolicy is a change of spec.podPreemptionPolicy. Only hosted plugins
	// register for it. It comes last, as records number the actions.
	UpdateNodePreemptionPolicy

	UpdatePod = UpdatePodLabel | UpdatePodScaleDown | UpdatePodScaleUp | UpdatePodSchedulingGatesEliminated | UpdatePodToleration | UpdatePodGeneratedResourceClaim | UpdatePodTerminating | UpdateOther
	All       = ActionType(1<<32 - 1)
)

// actionNames are v1.37's names of single actions, and Berth's own for UpdatePodTerminating, which
// v1.37 does not tell from Update.
var actionNames = map[ActionType]string{
	Add:                                "Add",
	Delete:                             "Delete",
	UpdateNodeAllocatable:              "UpdateNodeAllocatable",
	UpdateNodeLabel:                    "UpdateNodeLabel",
	UpdateNodeTaint:                    "UpdateNodeTaint",
	UpdateNodeCondition:                "UpdateNodeCondition",
	UpdateNodeAnnotation:               "UpdateNodeAnnotation",
	UpdateNodeDeclaredFeature:          "UpdateNodeDeclaredFeature",
	UpdatePodLabel:                     "UpdatePodLabel",
	UpdatePodScaleDown:                 "UpdatePodScaleDown",
	UpdatePodScaleUp:                   "UpdatePodScaleUp",
	UpdatePodSchedulingGatesEliminated: "UpdatePodSchedulingGatesEliminated",
	UpdatePodToleration:                "UpdatePodToleration",
	UpdatePodGeneratedResourceClaim:    "UpdatePodGeneratedResourceClaim",
	UpdateNamespaceLabel:               "UpdateNamespaceLabel",
	UpdateSelector:                     "UpdateSelector",
	UpdatePodTerminating:               "UpdatePodTerminating",
	UpdateOther:                        "Update",
	UpdateNodePreemptionPolicy:         "UpdateNodePreemptionPolicy",
}

// String returns the name of the action, v1.37's if it has one. Of several actions the lowest bit
// counts.
func (a ActionType) String() string {
	if a == All {
		return "All"
	}
	first := a & -a
	if name, ok := actionNames[first]; ok {
		return name
	}
	return strconv.Itoa(bits.TrailingZeros32(uint32(first)))
}

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
	// Table is the state of the cluster when the hint is called; nil if there is none.
	Table *table.Table
}

// ClusterEventWithHint describes events that may help a pod that the plugin rejected: those
// about Resource with one of the action types. QueueingHintFn, when set, looks closer; true
// is upstream's Queue, false QueueSkip. It may return true for an event that does not help,
// never false for one that does. It may read of the rejected pod only what
// object.Pod.AppendTemplate appends: it is called once for all pods that agree in that,
// except for an event about TargetPod.
type ClusterEventWithHint struct {
	Resource       EventResource
	ActionType     ActionType
	QueueingHintFn func(rejected *object.Pod, e *Event) bool
	// Names, when set, returns the names of the objects of Resource, a Kind, in the pod's
	// namespace that the pod refers to. Only an event about one of these helps the pod.
	Names func(rejected *object.Pod) []string
}

// OwnClaimChanged describes new and changed PVCs that the rejected pod uses. ephemeral includes
// those of its ephemeral volumes.
func OwnClaimChanged(ephemeral bool) ClusterEventWithHint {
	return ClusterEventWithHint{
		Resource: ResourceOf(object.PersistentVolumeClaims), ActionType: Add | UpdateOther,
		Names: func(p *object.Pod) []string { return p.PVCs(ephemeral) },
		QueueingHintFn: func(p *object.Pod, e *Event) bool {
			m := e.NewObject.Head()
			return m.Namespace == p.Namespace && p.UsesPVC(m.Name, ephemeral)
		},
	}
}

// Matches reports whether the event has the resource and one of the action types. It does not
// ask QueueingHintFn.
func (w *ClusterEventWithHint) Matches(e *Event) bool {
	return (w.Resource == e.Resource || w.Resource == WildCard) && w.ActionType&e.ActionType != 0
}

// QueuedPodInfo is a pod in the queue, as QueueSort plugins see it (upstream's
// QueuedPodInfo).
type QueuedPodInfo struct {
	Pod *object.Pod
	// Timestamp is when the pod was added to the queue or last came back from an attempt.
	Timestamp time.Time
	// FirstActive is when the pod became active for the first time; zero before.
	FirstActive time.Time
	// Tries counts the pod's attempts; the one in flight is included.
	Tries int
	// Sequence numbers the entries into the queue; it breaks ties of Less.
	Sequence uint64
	// Group is the PodGroup whose pods are tried together when Less is asked about it: Pod
	// is one of them then, and the times are the group's. nil: the pod is tried by itself.
	Group *object.PodGroup
	// HalfBound is set if Group is a gang of which a part is bound, and that part is smaller
	// than its minimum.
	HalfBound bool
}

// Priority returns the priority of the pod, or that of Group if this is one of Kubernetes' own.
func (i *QueuedPodInfo) Priority() int32 {
	if i.Group != nil && i.Group.Source == "" {
		return i.Group.Priority
	}
	return i.Pod.Priority
}

package framework

import (
	"time"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Resource is the kind of object that an event is about.
type Resource uint8

const (
	// AssignedPod is a pod that has a node (or is assumed on one).
	AssignedPod Resource = iota
	// PendingPod is a pod that waits to be scheduled: the rejected pod itself
	// or another.
	PendingPod
	Node
	Namespace
	// Family is a Service or a controller.
	Family
	// AnyResource stands for all of them (the periodic flush).
	AnyResource
	// The kinds of package object follow, in its order.
	firstKind
)

// Resources is how many resources there are.
const Resources = int(firstKind) + int(object.Kinds)

// Of is the resource of objects of a kind.
func Of(k object.Kind) Resource { return firstKind + Resource(k) }

// The resources of objects that only some plugins read.
const (
	PersistentVolumeClaim = firstKind + Resource(object.PersistentVolumeClaims)
	PersistentVolume      = firstKind + Resource(object.PersistentVolumes)
	StorageClass          = firstKind + Resource(object.StorageClasses)
	CSINode               = firstKind + Resource(object.CSINodes)
	CSIDriver             = firstKind + Resource(object.CSIDrivers)
	CSIStorageCapacity    = firstKind + Resource(object.CSIStorageCapacities)
	VolumeAttachment      = firstKind + Resource(object.VolumeAttachments)
	ResourceClaim         = firstKind + Resource(object.ResourceClaims)
	ResourceSlice         = firstKind + Resource(object.ResourceSlices)
	DeviceClass           = firstKind + Resource(object.DeviceClasses)
)

// Action is a set of things that happened to an object.
type Action uint32

const (
	Add Action = 1 << iota
	Delete
	UpdateNodeAllocatable
	UpdateNodeLabel
	UpdateNodeTaint // spec.unschedulable going false is one, too
	UpdateNodeCondition
	UpdateNodeAnnotation
	UpdateNodeFeature // status.declaredFeatures
	UpdatePodLabel
	UpdatePodScaleDown
	UpdatePodGatesEliminated
	UpdatePodToleration
	UpdatePodClaims // the claims generated for it, in its status
	UpdateNamespaceLabel
	UpdateFamilySelector
	// UpdatePodTerminating: the pod is on its way out, metadata.deletionTimestamp
	// is set.
	UpdatePodTerminating
	// UpdateOther is any update that is none of the above. Objects of a Kind
	// know no other.
	UpdateOther

	UpdateNode = UpdateNodeAllocatable | UpdateNodeLabel | UpdateNodeTaint | UpdateNodeCondition | UpdateNodeAnnotation | UpdateNodeFeature
	UpdatePod  = UpdatePodLabel | UpdatePodScaleDown | UpdatePodGatesEliminated | UpdatePodToleration | UpdatePodClaims | UpdatePodTerminating | UpdateOther
	All        = Action(1<<32 - 1)
)

// Event is a change in the cluster, as wake rules see it. Old values are nil
// on Add, new ones on Delete; a namespace that is not there has no labels, and
// is never nil.
type Event struct {
	Resource                   Resource
	Action                     Action
	OldNode, NewNode           *object.Node
	OldPod, NewPod             *object.Pod
	OldNamespace, NewNamespace *object.Namespace
	OldFamily, NewFamily       *object.Family
	OldObject, NewObject       object.Object // of a Kind
	// Table is the cluster as it stands when a hint is asked about a node; hints
	// about anything else do without.
	Table *table.Table
}

// Wake is a rule: events of this resource with one of these actions may help
// a pod that the plugin rejected. Hint, when set, looks closer; true wakes
// the pod. A hint may err on the side of waking, never on the other.
type Wake struct {
	Resource Resource
	Actions  Action
	Hint     func(rejected *object.Pod, e *Event) bool
}

// QueuedPod is a pod in the queue, as QueueSort plugins see it.
type QueuedPod struct {
	Pod *object.Pod
	// Timestamp is when the pod last entered the queue.
	Timestamp time.Time
	// Sequence numbers the entries into the queue; it breaks ties of Less.
	Sequence uint64
}

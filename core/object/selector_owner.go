package object

import "k8s.io/apimachinery/pkg/labels"

// SelectorOwnerKind is the kind of a SelectorOwner.
type SelectorOwnerKind uint8

const (
	NoSelectorOwner SelectorOwnerKind = iota
	Service
	ReplicationController
	ReplicaSet
	StatefulSet
)

// SelectorOwner is an object with a selector of pods that belong together: a
// Service or a controller.
// Immutable.
type SelectorOwner struct {
	Kind      SelectorOwnerKind
	Namespace string
	Name      string
	// Labels is the selector of a Service or ReplicationController; without
	// any, it has no pods.
	Labels map[string]string
	// Requirements is the selector of a ReplicaSet or StatefulSet; nil where
	// there is none or it does not parse.
	Requirements labels.Requirements
	// Key is equal for owners of one kind that select the same pods by
	// construction.
	Key string
	// Recorded is as a Pod's.
	Recorded string
}

// Controller names the controller that owns a pod. Kind is NoSelectorOwner if none does,
// or one of a kind that the scheduler does not know.
type Controller struct {
	Kind SelectorOwnerKind
	// Replacement is what comes in the pod's place when it is deleted.
	Replacement Replacement
	Name        string
}

// Replacement is where the pod goes that a controller makes in place of a deleted one.
type Replacement uint8

const (
	NoReplacement Replacement = iota // the pod has no controller
	AnyNode                          // its controller makes a pod, which may go elsewhere
	SameNode                         // its DaemonSet or kubelet makes it for the same node
)

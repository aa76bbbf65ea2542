package object

import "k8s.io/apimachinery/pkg/labels"

// SelectorOwnerKind is the kind of a SelectorOwner.
type SelectorOwnerKind uint8

// Kinds of selector owners, and none.
const (
	NoSelectorOwner SelectorOwnerKind = iota
	Service
	ReplicationController
	ReplicaSet
	StatefulSet
)

// String returns the API's name of the kind, such as Service; "" for NoSelectorOwner.
func (k SelectorOwnerKind) String() string {
	return [...]string{"", "Service", "ReplicationController", "ReplicaSet", "StatefulSet"}[k]
}

// SelectorOwner is a Service or a controller, whose selector tells which pods belong
// together. Immutable.
type SelectorOwner struct {
	Kind      SelectorOwnerKind
	Namespace string
	Name      string
	// Labels is the selector of a Service or ReplicationController; an empty one selects no
	// pods.
	Labels map[string]string
	// Requirements is the selector of a ReplicaSet or StatefulSet; nil if there is none or
	// it does not parse.
	Requirements labels.Requirements
	// Key identifies the kind and the selector: owners with equal keys select the same pods.
	Key string
	// Recorded is the API object in the form in which a record of the scheduler's inputs
	// holds it (edge/recording); "" unless a record is kept.
	Recorded string
}

// Controller is the controller that owns a pod. Kind is NoSelectorOwner if there is none,
// or one of a kind that the scheduler does not read.
type Controller struct {
	Kind SelectorOwnerKind
	// Replacement tells where the controller recreates the pod after it was deleted.
	Replacement Replacement
	Name        string
}

// Replacement is where a pod's controller creates another one in its place.
type Replacement uint8

const (
	NoReplacement Replacement = iota // nowhere: the pod has no controller
	AnyNode                          // as a new pod that may be scheduled to any node
	SameNode                         // on the same node: a pod of a DaemonSet, or a static pod
)

package object

import "k8s.io/apimachinery/pkg/labels"

// FamilyKind is what makes pods a family.
type FamilyKind uint8

const (
	NoFamily FamilyKind = iota
	Service
	ReplicationController
	ReplicaSet
	StatefulSet
)

// Family is an object whose pods belong together: a Service or a controller.
// Immutable.
type Family struct {
	Kind      FamilyKind
	Namespace string
	Name      string
	// Labels is the selector of a Service or ReplicationController; without
	// any, it has no pods.
	Labels map[string]string
	// Requirements is the selector of a ReplicaSet or StatefulSet; nil where
	// there is none or it does not parse.
	Requirements labels.Requirements
	// Key is equal for families of one kind that select the same pods by
	// construction.
	Key string
}

// Controller names the controller that owns a pod; Kind is NoFamily where
// nobody does whom the scheduler knows.
type Controller struct {
	Kind FamilyKind
	Name string
}

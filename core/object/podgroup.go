package object

import v1 "k8s.io/api/core/v1"

// PodGroup is what the scheduler knows of one PodGroup: how many of its pods must be
// placed together.
type PodGroup struct {
	Meta
	Generation int64 // metadata.generation
	// Gang: the group has a gang policy. Without one its pods are placed in one cycle, as
	// many as fit.
	Gang bool
	// MinCount is how many pods of a gang must be placed for any to be bound.
	MinCount int
	// Constrained: the group has scheduling constraints. TopologyKey is the key of the node
	// label whose value all of its pods are to share, "" for none.
	Constrained bool
	TopologyKey string
	// Priority is spec.priority, 0 without one. The pods of the group have their own.
	Priority int32
	// PreemptedWhole: where one of its pods is preempted all of them are
	// (spec.disruptionMode PodGroup).
	PreemptedWhole bool
	// Scheduled is the group's PodGroupScheduled condition as the API shows it.
	Scheduled GroupCondition
}

// GroupCondition is the part of a condition of a group that a status patch would
// change.
type GroupCondition struct {
	Status             v1.ConditionStatus
	Reason             string
	Message            string
	ObservedGeneration int64
}

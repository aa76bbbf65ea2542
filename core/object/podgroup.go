package object

import v1 "k8s.io/api/core/v1"

// PodGroup is what the scheduler reads of one PodGroup.
type PodGroup struct {
	Meta
	Generation int64 // metadata.generation
	// Gang is set if the group has a gang policy. Without one as many of its pods are
	// placed, in one cycle, as fit.
	Gang bool
	// MinCount is how many pods of a gang must fit for any to be bound.
	MinCount int
	// TopologyKey is the node label of which all its pods' nodes must have one value, ""
	// for none.
	TopologyKey string
	// Priority is spec.priority, 0 without one. The pods of the group have their own.
	Priority int32
	// PreemptedWhole is set if all pods of the group are preempted when one is
	// (spec.disruptionMode all).
	PreemptedWhole bool
	// Scheduled is the group's PodGroupInitiallyScheduled condition as the API shows it.
	Scheduled GroupCondition
}

// GroupCondition is the part of a PodGroup condition that the scheduler writes: as the API
// shows it, or as it is to be.
type GroupCondition struct {
	Status             v1.ConditionStatus
	Reason             string
	Message            string
	ObservedGeneration int64
}

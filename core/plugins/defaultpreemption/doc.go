// Package defaultpreemption makes room for a pod that fits nowhere: pods of
// lower priority are evicted from the node where that does the least harm, and
// the pod is nominated to it. Core/preempt makes the plan.
package defaultpreemption

// Package preempt finds out who has to go for a pod that fits nowhere: on
// which node, and which pods of lower priority there. Nodes are ranked by what
// sums over their pods promise at best, so that few are tried. It tries on the
// table itself, under a checkpoint: all lower pods of a node go, and as many as
// possible come back, those that a disruption budget protects first. It
// changes nothing; what it finds is a plan.
package preempt

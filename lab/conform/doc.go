// Package conform compares Berth with kube-scheduler, decision by
// decision. Both get the same generated world and decide on each pod. The
// comparison covers feasible nodes, first blockers, codes and reasons,
// normalised scores, the choice, the message and the unschedulable plugins.
// Then both place the pod on Berth's node.
//
// Both also see changes of the cluster while pods wait. The comparison covers
// which pods a change requeues, and the order in which the queues hand out
// pods. A disagreement is shrunk to the smallest world that still shows it, and
// written as a story (package scenario). The project's own stories are played
// on both sides, too. docs/conformance.md says how to use it.
package conform

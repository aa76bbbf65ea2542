// Package conform compares Berth with kube-scheduler v1.36.3, decision by
// decision. Both are given the same generated world; each pod is decided by
// both, and everything that the two say about it is compared: feasible nodes,
// first blockers, codes and reasons, normalised scores, the choice, the
// message, the plugins to blame. Then both place the pod where Berth chose.
// Changes of the cluster are shown to both while pods wait, and what they wake
// is compared too; so is the order in which the queues hand out pods. A
// disagreement is shrunk to the smallest world that still shows it and written
// as a story (package scenario). The project's own stories are played on both
// sides, too. docs/conformance.md tells how to use it.
package conform

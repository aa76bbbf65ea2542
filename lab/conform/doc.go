// Package conform compares Berth with kube-scheduler v1.36.3, decision by
// decision. Both are given the same generated world; each pod is decided by
// both, and everything that the two say about it is compared: feasible nodes,
// first blockers, codes and reasons, normalised scores, the choice, the
// message, the plugins to blame. Then both place the pod where Berth chose.
// Changes of the cluster are shown to both while pods wait, and what they wake
// is compared too. A disagreement is shrunk to the smallest world that still
// shows it.
package conform

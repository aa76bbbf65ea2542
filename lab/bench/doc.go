// Package bench measures Berth beside kube-scheduler v1.36.3 on the workloads
// of kube-scheduler's own benchmark suite: the decision alone, in process, on
// the same snapshot (mode decide), or the whole scheduler against a fresh
// control plane (mode cluster). The two take turns in one call, so that a
// drift of the machine's speed hits both. The result is the JSON that the
// contract fixes, or a table.
package bench

// Package bench measures Berth beside kube-scheduler on the workloads
// of kube-scheduler's own benchmark suite. Mode decide measures the decision
// alone, in process, on the same snapshot. Mode cluster measures the whole
// scheduler against a fresh control plane. The two schedulers take turns in one
// call, so that a drift of the machine's speed affects both. The result is the
// JSON that the contract fixes, or a table.
package bench

// Package preemption compares Berth's preemption with that of kube-scheduler
// v1.36.3, which runs here in process: for the same cluster, budgets and pod
// the same victims, on a node that is as good, and the same message. It holds
// tests only.
package preemption

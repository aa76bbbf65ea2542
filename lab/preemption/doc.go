// Package preemption compares Berth's preemption with that of
// kube-scheduler, which runs in process. For the same cluster, budgets and pod, both
// choose the same victims on a node that is as good, with the same message. The
// package holds only tests.
package preemption

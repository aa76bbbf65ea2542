// Package oracle is kube-scheduler v1.36.3 itself, linked in and asked one
// question at a time: given these nodes and the pods on them, what becomes of
// this pod? It answers with a Record: for each node the verdict or the scores,
// the set of best nodes, the words of the PodScheduled condition; and which
// waiting pods a change would wake. There is no API server and no loop: its
// own cache, framework and queue are driven by hand. Every node is evaluated
// (percentageOfNodesToScore 100). DefaultScheduler is the same scheduler left at its
// defaults, for measuring how fast it decides.
package oracle

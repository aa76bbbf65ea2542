// Package oracle is kube-scheduler itself, linked in and asked one
// question at a time: given these nodes and their pods, what happens to this
// pod? The answer is a Record: the status or the scores of each node, the set
// of best nodes, and the message of the PodScheduled condition. The oracle also
// says which waiting pods a change requeues. There is no API server and no
// loop: the package drives kube-scheduler's own cache, framework and queue by
// hand. Every node is evaluated (percentageOfNodesToScore 100).
// DefaultScheduler is the same scheduler with its defaults, to measure its speed.
package oracle

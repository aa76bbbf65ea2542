package queue

// Size is what a rejected pod needs at least of a node. It tells of most pods that an event
// about a node is in vain for them, without a look at each: where 10,000 pods wait, each of
// a workload of its own, such looks took 6 ms an event.
type Size struct {
	Priority         int32
	MilliCPU, Memory int64
}

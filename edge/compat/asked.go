package compat

import fwk "k8s.io/kube-scheduler/framework"

// asked holds the arguments and results of one call of a Filter or Score plugin for several nodes.
// The slices have one element for each node. A call of Filter uses states and statuses, one of
// Score uses scores. While the plugin may still run, only it may use them.
type asked struct {
	nodes    []*nodeInfo // nil: the row has no node
	states   []fwk.CycleState
	statuses []*fwk.Status
	scores   []int64
}

// askedBuffer keeps the memory of the last call for the next one. free is nil while a call uses it.
type askedBuffer struct{ free *asked }

// leastNodes is the least capacity, in nodes, of an asked that is allocated, so that it can
// be reused for calls about a few more nodes.
const leastNodes = 64

// take returns the memory for a call about n nodes: cleared slices of length n. It reuses
// that of the last call if it is large enough.
func (r *askedBuffer) take(n int) *asked {
	x := r.free
	if r.free = nil; x == nil || cap(x.nodes) < n {
		most := max(n, leastNodes)
		x = &asked{make([]*nodeInfo, most), make([]fwk.CycleState, most), make([]*fwk.Status, most), make([]int64, most)}
	}
	x.nodes, x.states, x.statuses, x.scores = x.nodes[:n], x.states[:n], x.statuses[:n], x.scores[:n]
	return x
}

// release takes x back for reuse. The caller must not release the asked of a call that has
// not returned.
func (r *askedBuffer) release(x *asked) {
	clear(x.nodes)
	clear(x.states)
	clear(x.statuses)
	clear(x.scores)
	r.free = x
}

package compat

import fwk "k8s.io/kube-scheduler/framework"

// asked holds the nodes of one call of a plugin, and its answers. While the plugin may
// still run, nobody else touches them.
type asked struct {
	nodes    []*nodeInfo
	states   []fwk.CycleState
	statuses []*fwk.Status
	scores   []int64
}

// askedBuffer keeps the memory of one call for the next.
type askedBuffer struct{ free *asked }

// leastNodes is the least number of nodes for which memory is allocated.
const leastNodes = 64

// take returns cleared slices for n nodes.
func (r *askedBuffer) take(n int) *asked {
	x := r.free
	if r.free = nil; x == nil || cap(x.nodes) < n {
		most := max(n, leastNodes)
		x = &asked{make([]*nodeInfo, most), make([]fwk.CycleState, most), make([]*fwk.Status, most), make([]int64, most)}
	}
	x.nodes, x.states, x.statuses, x.scores = x.nodes[:n], x.states[:n], x.statuses[:n], x.scores[:n]
	return x
}

// release takes back what take returned, after a call that has returned.
func (r *askedBuffer) release(x *asked) {
	clear(x.nodes)
	clear(x.states)
	clear(x.statuses)
	clear(x.scores)
	r.free = x
}

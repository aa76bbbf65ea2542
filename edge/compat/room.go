package compat

import fwk "k8s.io/kube-scheduler/framework"

// asked is nodes that a plugin is asked about, and what it answers. While the plugin may
// still be at it nobody else touches them.
type asked struct {
	nodes    []*nodeInfo
	states   []fwk.CycleState
	statuses []*fwk.Status
	scores   []int64
}

// room is kept from one call to the next.
type room struct{ free *asked }

// leastRoom is for how many nodes there is room at least.
const leastRoom = 64

// of is room for n nodes, all of it zero.
func (r *room) of(n int) *asked {
	x := r.free
	if r.free = nil; x == nil || cap(x.nodes) < n {
		most := max(n, leastRoom)
		x = &asked{make([]*nodeInfo, most), make([]fwk.CycleState, most), make([]*fwk.Status, most), make([]int64, most)}
	}
	x.nodes, x.states, x.statuses, x.scores = x.nodes[:n], x.states[:n], x.statuses[:n], x.scores[:n]
	return x
}

// back takes the room back after a call that has returned.
func (r *room) back(x *asked) {
	clear(x.nodes)
	clear(x.states)
	clear(x.statuses)
	clear(x.scores)
	r.free = x
}

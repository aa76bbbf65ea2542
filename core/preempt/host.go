package preempt

import (
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// host computes how many pods of a class a row takes once some units left it and some of the
// group's pods are placed there. It does not touch the table.
type host struct {
	class   *framework.GroupClass
	free    []int64 // what is free, by class.Sums; nil: the row takes none, whoever leaves
	rejects bool    // the row takes none before somebody leaves
	placed  bool    // a pod of the class is placed on the row
}

// hostOn returns the host for the class and the row, before units leave and pods come.
func hostOn(class *framework.GroupClass, r table.Row) host {
	return host{class: class, free: slices.Clone(class.Free[r]), rejects: class.Rejected[r]}
}

// frees returns what the pods use together, for each of the class's sums.
func (h *host) frees(pods []*object.Pod) []int64 {
	frees := make([]int64, len(h.class.Sums))
	for i := range frees {
		for _, p := range pods {
			frees[i] = resource.Add(frees[i], h.class.Sums[i].UsedBy(p))
		}
	}
	return frees
}

// leave adds what the pods use to what is free. If there is a pod, the row does not reject the
// class any more.
func (h *host) leave(pods []*object.Pod) {
	h.rejects = h.rejects && len(pods) == 0
	for i, n := range h.frees(pods) {
		if h.free != nil {
			h.free[i] = resource.Add(h.free[i], n)
		}
	}
}

// come subtracts what the pods, which are of the group, use from what is free. It sets placed if
// one of them is of the class.
func (h *host) come(pods []*object.Pod) {
	for i, n := range h.frees(pods) {
		if h.free != nil {
			h.free[i] = resource.Sub(h.free[i], n)
		}
	}
	h.placed = h.placed || slices.ContainsFunc(pods, func(p *object.Pod) bool { return slices.Contains(h.class.Pods, p) })
}

// takes returns how many more pods of the class the row takes, by its sums, at most most.
func (h *host) takes(most int) int {
	switch {
	case h.free == nil || h.rejects || h.class.Alone && h.placed:
		return 0
	case h.class.Alone:
		most = min(most, 1)
	}
	for i, free := range h.free {
		most = int(min(int64(most), max(0, free)/h.class.Sums[i].Request))
	}
	return most
}

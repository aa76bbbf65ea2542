package replay

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/sim"
)

// Sample is the cluster at one time. Shares are between 0 and 1.
type Sample struct {
	Time    time.Time `json:"time"`
	Pending int       `json:"pending"`
	Placed  int       `json:"placed"`
	CPU     float64   `json:"cpu"`    // requested, of what nodes offer
	Memory  float64   `json:"memory"` // requested, of what nodes offer
	// Stranded is the share of the free CPU that is on nodes where a pod of the
	// average size does not fit.
	Stranded float64 `json:"stranded"`
	// Empty counts the nodes without pods, but for those that belong to their node.
	Empty int `json:"empty"`
}

// A sampler takes a sample every so often. Where there are many it keeps every
// other one and takes its time.
type sampler struct {
	list  []Sample
	next  time.Time
	every time.Duration
}

const maxSamples = 480

func (s *sampler) take(w *sim.World) {
	if len(s.list) >= maxSamples {
		for i := range maxSamples / 2 {
			s.list[i] = s.list[2*i]
		}
		s.list = s.list[:maxSamples/2]
		s.every *= 2
	}
	s.every = max(s.every, time.Second)
	s.list = append(s.list, look(w))
	s.next = w.Now.Add(s.every)
}

// look is the cluster now.
func look(w *sim.World) Sample {
	t, counts := w.Machine.Table(), w.Machine.Queue().Counts()
	s := Sample{Time: w.Now, Placed: t.PlacedPods(), Pending: counts.Active + counts.Backoff + counts.ErrorBackoff + counts.Unschedulable + counts.Gated + counts.InFlight}
	cpu, memory := t.Allocatable(table.CPU), t.Allocatable(table.Memory)
	usedCPU, usedMemory := t.Used(table.CPU), t.Used(table.Memory)
	var all, used, allMemory, takenMemory, free, stranded, pods int64
	for _, r := range t.All() {
		if t.Node(r) == nil {
			continue
		}
		all, used = all+cpu[r], used+usedCPU[r]
		allMemory, takenMemory = allMemory+memory[r], takenMemory+usedMemory[r]
		pods += t.PodCount()[r]
		if empty(t.Pods(r)) {
			s.Empty++
		}
	}
	if all > 0 {
		s.CPU = float64(used) / float64(all)
	}
	if allMemory > 0 {
		s.Memory = float64(takenMemory) / float64(allMemory)
	}
	if pods == 0 {
		return s
	}
	meanCPU, meanMemory := used/pods, takenMemory/pods
	for _, r := range t.All() {
		_, left := sums.Free(t, v1.ResourceCPU, r)
		if t.Node(r) == nil || t.Node(r).Unschedulable || left <= 0 {
			continue
		}
		free += left
		_, leftMemory := sums.Free(t, v1.ResourceMemory, r)
		if _, more := sums.Free(t, v1.ResourcePods, r); left < meanCPU || leftMemory < meanMemory || more <= 0 {
			stranded += left
		}
	}
	if free > 0 {
		s.Stranded = float64(stranded) / float64(free)
	}
	return s
}

// empty reports whether a node with these pods could go: all come from DaemonSets, or from
// the node itself.
func empty(pods []*table.Placed) bool {
	return !slices.ContainsFunc(pods, func(pl *table.Placed) bool { return pl.Pod.Controller.Replacement != object.SameNode })
}

// emptyNodes returns the names of the nodes that are empty, sorted.
func emptyNodes(t *table.Table) []string {
	names := []string{}
	for _, r := range t.All() {
		if t.Node(r) != nil && empty(t.Pods(r)) {
			names = append(names, t.Name(r))
		}
	}
	slices.Sort(names)
	return names
}

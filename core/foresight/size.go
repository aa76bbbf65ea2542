package foresight

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// size returns the name of a plugin that rejected the pod and compares requests
// (NodeResourcesFit), with what the pod requests. It returns "" unless all plugins that
// rejected the pod keep it off each node that is too small for that, even without all pods
// of lower priority, for as long as the pod waits. A pod with an ElasticQuota may preempt
// pods of any priority, so it has no size.
func (f *Foresight) size(of *profile.Profile, e *queue.Entry) (plugin string, size queue.Size) {
	p := e.Pod
	switch {
	case f.preempts(of, p) && !f.FoundNoVictims(p), quota.Of(f.Table).Queue(p.Namespace) != nil:
		return "", size
	case len(p.Demand.Requests.Scalars) > 0 || f.othersMakeRoom(of, p): // may change with other objects
		return "", size
	}
	for name, pending := range e.RejectedBy() {
		pl := of.Plugins[name]
		if pl == nil || pending || !hintsCover(pl, &framework.Event{}) {
			return "", size
		}
		if comparesRequests(pl, f.Table, p) {
			plugin = name
		}
	}
	return plugin, queue.Size{Priority: p.Priority, MilliCPU: p.Demand.Requests.MilliCPU, Memory: p.Demand.Requests.Memory}
}

// comparesRequests reports whether the plugin's filter rejects each node that has less CPU
// or memory left than the pod requests.
func comparesRequests(pl *framework.Plugin, t *table.Table, p *object.Pod) bool {
	if pl.PreFilter == nil || pl.Locality != framework.NodeAndPods || pl.Costly {
		return false
	}
	list, r := pl.PreFilter(t, p).Sums, &p.Demand.Requests
	compares := func(name v1.ResourceName, request int64) bool {
		return request <= 0 || slices.ContainsFunc(list, func(s sums.Sum) bool { return s.Name == name && s.Request >= request })
	}
	return list != nil && compares(v1.ResourceCPU, r.MilliCPU) && compares(v1.ResourceMemory, r.Memory)
}

// measures reports whether a size can exclude pods from the event: the event is about one known
// node, and not about a pod that frees volumes or claims, which other plugins may not have seen.
func (q *question) measures() bool {
	if q.event.Resource != framework.AssignedPod && q.event.Resource != framework.Node || !q.about || q.Table.Node(q.row) == nil {
		return false
	}
	left := q.event.OldPod
	return left == nil || len(left.Claims) == 0 && !left.HasPVCs(true)
}

// TooLarge reports whether a pod of that size and priority requests more CPU or memory than
// the event's node has, less what its pods of at least that priority use, those nominated
// to it included. It returns false if the event is about no node, or sizes cannot exclude
// pods from it (measures).
func (q *question) TooLarge(s queue.Size) bool {
	if !q.measurable {
		return false
	}
	for i := range q.largest {
		if r := &q.largest[i]; r.Priority == s.Priority {
			return s.MilliCPU > r.MilliCPU || s.Memory > r.Memory
		}
	}
	r := largestFor(q.Table, q.row, s.Priority, q.nominated)
	q.largest = append(q.largest, r)
	return s.MilliCPU > r.MilliCPU || s.Memory > r.Memory
}

// largestFor returns the largest CPU and memory requests with which a pod of the priority
// would fit on the row if all pods of lower priority left. nominated pods of at least the
// priority count as placed.
func largestFor(t *table.Table, row table.Row, priority int32, nominated []*object.Pod) queue.Size {
	above := atLeast(nominated, priority)
	most := func(name v1.ResourceName) int64 {
		sum := sums.New(t, name, 0, false)
		return sum.Most(t, row, priority, above)
	}
	return queue.Size{Priority: priority, MilliCPU: most(v1.ResourceCPU), Memory: most(v1.ResourceMemory)}
}

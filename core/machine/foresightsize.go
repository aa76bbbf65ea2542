package machine

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// Size returns the plugin that compares requests, if it rejected the pod, and what the pod
// requests. It returns "" unless the plugin keeps the pod off each node that is too small,
// even without all pods of lower priority. What it reads besides the pod does not change
// while the pod waits.
func (f *foresight) Size(e *queue.Entry) (plugin string, size queue.Size) {
	p, of, ps := e.Pod, f.profiles[e.Pod.SchedulerName], f.pods.byUID[e.Pod.UID]
	switch {
	case of == nil || of.Host != nil || ps == nil || p.API != nil || e.NominatedNode() != "":
		return "", size
	case preempts(of, p) && !ps.noVictims:
		return "", size
	case len(p.Claims)+len(p.Demand.Requests.Scalars) > 0 || f.othersMakeRoom(of, p): // may change with other objects
		return "", size
	}
	for name, pending := range e.RejectedBy() {
		pl := of.Plugins[name]
		if pl == nil || pending || !hintsCover(pl, &framework.Event{}) {
			return "", size
		}
		if pl.ComparesRequests {
			plugin = name
		}
	}
	return plugin, queue.Size{Priority: p.Priority, MilliCPU: p.Demand.Requests.MilliCPU, Memory: p.Demand.Requests.Memory}
}

// TooLarge returns a test for events about a node: a pod is too large if it requests more
// than the node has beside the pods of its priority and above, those nominated to it
// included. It has no test for events about pods that free volumes or claims, which other
// plugins may not have seen.
func (f *foresight) TooLarge(event *framework.Event) func(queue.Size) bool {
	left := event.OldPod
	if event.Resource != framework.AssignedPod && event.Resource != framework.Node || left != nil && (len(left.Claims) > 0 || left.HasPVCs(true)) {
		return nil
	}
	row, ok := f.rowOf(event)
	if !ok || f.table.Node(row) == nil {
		return nil
	}
	nominated := f.nominatedNowhere(row)
	var rooms []queue.Size // by priority, as far as asked for
	return func(s queue.Size) bool {
		for i := range rooms {
			if r := &rooms[i]; r.Priority == s.Priority {
				return s.MilliCPU > r.MilliCPU || s.Memory > r.Memory
			}
		}
		r := roomFor(f.table, row, s.Priority, nominated)
		rooms = append(rooms, r)
		return s.MilliCPU > r.MilliCPU || s.Memory > r.Memory
	}
}

// roomFor returns what there is for a pod of the priority on the row, if all others below it
// went.
func roomFor(t *table.Table, row table.Row, priority int32, nominated []*object.Pod) queue.Size {
	above := atLeast(nominated, priority)
	most := func(name v1.ResourceName) int64 {
		sum := sums.New(t, name, 0, false)
		return sum.Most(t, row, priority, above)
	}
	return queue.Size{Priority: priority, MilliCPU: most(v1.ResourceCPU), Memory: most(v1.ResourceMemory)}
}

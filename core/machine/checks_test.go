package machine

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// checkFree: of a pod's binding, writes and reads only one is on its way.
func (w *world) checkFree(p *object.Pod, next Effect) {
	w.Helper()
	for _, r := range w.requests {
		if uid, ok := flying(r); ok && uid == p.UID {
			w.Fatalf("%T of %s while a %T is on its way", next, p.UID, r)
		}
	}
}

// checkNode: no binding goes to a node that is known to be gone.
func (w *world) checkNode(p *object.Pod, node string) {
	w.Helper()
	if w.toldNodes[node] == nil {
		w.Fatalf("binds %s to %s, which is gone", p.UID, node)
	}
}

// checkRoom: the node has room for the pod beside all that the machine was
// told of, all that it bound itself, told or not, and all that its requests
// may yet bind.
func (w *world) checkRoom(d *decision.Decision) {
	w.Helper()
	n := w.toldNodes[d.Node]
	if n == nil {
		w.Fatalf("%s goes to %s, which is no node", d.UID, d.Node)
	}
	sum := map[types.UID]int64{}
	for key, p := range w.pods {
		if told := w.told[key]; p.NodeName == d.Node && !p.Terminal && (w.ours[p.UID] || told != nil && told.UID == p.UID && told.NodeName == d.Node) {
			sum[p.UID] = p.Demand.Usage.MilliCPU
		}
	}
	for _, r := range slices.Concat(w.requests, asEffects(w.late)) {
		if b, ok := asBind(r); ok && b.Node == d.Node && w.binds(b) {
			sum[b.Pod.UID] = b.Pod.Demand.Usage.MilliCPU
		}
	}
	mine := w.told[d.Pod.String()].Demand.Usage.MilliCPU
	delete(sum, d.UID)
	total := mine
	for _, cpu := range sum {
		total += cpu
	}
	if mine > 0 && total > n.Allocatable.MilliCPU {
		w.Fatalf("%s goes to %s, which has %d: with %v there it needs %d", d.UID, d.Node, n.Allocatable.MilliCPU, sum, total)
	}
}

// checkPublished: an event about a failure stands after the record of it, and
// Scheduled comes once, of a pod that is bound.
func (w *world) checkPublished(i int, e PublishEvent) {
	w.Helper()
	switch e.Reason {
	case "Scheduled":
		p := w.pods[e.Pod.Key()]
		if w.published[e.Pod.UID]++; w.published[e.Pod.UID] > 1 {
			w.Fatalf("%s is reported as scheduled again", e.Pod.UID)
		}
		if p != nil && p.UID == e.Pod.UID && p.NodeName == "" {
			w.Fatalf("%s is reported as scheduled, and is not", e.Pod.UID)
		}
	case "FailedScheduling":
		if strings.HasPrefix(e.Note, "skip schedule deleting pod") {
			return
		}
		if i == 0 {
			w.Fatalf("%s: an event without a record", e.Pod.UID)
		}
		if d, ok := w.effects[i-1].(AttemptDone); !ok || d.Decision.UID != e.Pod.UID || !e.Warning || e.Note == "" {
			w.Fatalf("%s: the event %+v follows %+v", e.Pod.UID, e, w.effects[i-1])
		}
	}
}

// checkPatch: a condition is written after the event that says the same, or with time for
// a pod that waits, and only where it changes something: what the watch shows, or what was
// written since.
func (w *world) checkPatch(i int, e PatchStatus) {
	w.Helper()
	if e.Condition == nil && e.Nominated == nil {
		w.Fatalf("an empty patch of %s", e.Pod.UID)
	}
	if e.Condition == nil {
		return
	}
	told, written := w.told[e.Pod.Key()], w.written[e.Pod.UID]
	w.written[e.Pod.UID] = *e.Condition
	if told != nil && told.UID == e.Pod.UID && told.Scheduled == *e.Condition && (written == object.Condition{} || written == *e.Condition) {
		w.Fatalf("%s: the condition is already %+v", e.Pod.UID, told.Scheduled)
	}
	if _, ticked := w.event.(Tick); ticked && w.m.Entry(e.Pod.UID).Place() == queue.Unschedulable {
		return
	}
	if a, ok := w.effects[max(i-1, 0)].(PublishEvent); !ok || a.Pod.UID != e.Pod.UID {
		w.Fatalf("%s: the patch follows %+v", e.Pod.UID, w.effects[max(i-1, 0)])
	}
}

// checkRest: each pod is bound, gated, or unschedulable for a reason that it
// shows; and the machine knows just what the API has.
func (w *world) checkRest() {
	w.Helper()
	placed := 0
	for _, key := range slices.Sorted(maps.Keys(w.pods)) {
		p := w.pods[key]
		if p.Terminal {
			continue
		}
		if p.NodeName != "" {
			placed++
			if pl := w.m.table.Pod(p.UID); pl == nil || w.m.table.Name(pl.Row) != p.NodeName {
				w.Fatalf("%s runs on %s, the machine has %+v", p.UID, p.NodeName, pl)
			}
			continue
		}
		if p.SchedulerName != scheduler {
			continue
		}
		s := w.m.Entry(p.UID).State()
		if len(p.Gates) > 0 {
			if s.Place != queue.Gated {
				w.Fatalf("%s has gates and is %s", p.UID, s.Place)
			}
			continue
		}
		if s.Place != queue.Unschedulable {
			w.Fatalf("%s is at rest and %s", p.UID, s.Place)
		}
		if p.NominatedNode != "" || s.NominatedNode != "" {
			w.Fatalf("%s is at rest and nominated to %q, in the API to %q", p.UID, s.NominatedNode, p.NominatedNode)
		}
		if p.Scheduled.Reason != v1.PodReasonUnschedulable || p.Scheduled.Status != v1.ConditionFalse || !strings.HasPrefix(p.Scheduled.Message, "0/") {
			w.Fatalf("%s is unschedulable and shows %+v", p.UID, p.Scheduled)
		}
		for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
			if w.fits(p, w.nodes[name]) {
				w.Fatalf("%s is unschedulable and fits on %s\n%s", p.UID, name, w.m.queue)
			}
		}
	}
	if w.m.table.PlacedPods() != placed || w.m.Assumed() != 0 || w.m.table.Live() != len(w.nodes) {
		w.Fatalf("%d pods placed, %d assumed, %d nodes; the API has %d pods, %d nodes",
			w.m.table.PlacedPods(), w.m.Assumed(), w.m.table.Live(), placed, len(w.nodes))
	}
	if len(w.m.extenders.cycles) != 0 || len(w.m.extenders.line) != 0 {
		w.Fatalf("%d pods wait for extenders, %d of them in line", len(w.m.extenders.cycles), len(w.m.extenders.line))
	}
	for _, ps := range w.m.pods.sorted() {
		switch {
		case ps.binding != nil, ps.ended != nil, ps.unconfirmed != nil, ps.goneByRead != nil, ps.eviction != nil, w.m.pods.byName[ps.pod.NamespacedName()] != ps:
			w.Fatalf("more is remembered of %s than that it is there: %+v", ps.pod.UID, ps)
		case ps.nominating != nil:
			w.Fatalf("a nomination of %s was asked for and is not shown: %q", ps.pod.UID, *ps.nominating)
		case ps.toldGated && ps.entry == nil:
			w.Fatalf("a gate of %s is remembered, who is gone", ps.pod.UID)
		}
	}
}

func (w *world) fits(p *object.Pod, n *object.Node) bool {
	if zone := p.Labels["zone"]; zone != "" && zone != n.Labels["zone"] {
		return false
	}
	used := int64(0)
	for _, q := range w.pods {
		if q.NodeName == n.Name && !q.Terminal {
			used += q.Demand.Usage.MilliCPU
		}
	}
	cpu := p.Demand.Usage.MilliCPU
	return cpu == 0 || used+cpu <= n.Allocatable.MilliCPU
}

package machine

import (
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/recovered"
	"github.com/berth-scheduler/berth/core/table"
)

// wouldFailAgain tells that an event about one node does not help a rejected pod, whatever
// the queueing hints say: the pod still does not fit there, and nothing else has
// changed for it.
//
// Suppose that NodeResourcesFit alone rejected a pod of 500 CPUs. A pod of 1 CPU
// leaves a node. The hint says Queue, as CPUs became free. But what the plugin says
// of other nodes depends on nothing that happened on this one, and here it still
// rejects the pod. Whatever makes it fit here later is an event about this node
// again, and the plugin is asked again.
//
// So all plugins that rejected the pod have to answer by the node alone, and one of
// them has to reject it on the node now; or they answer by domains, and their own hint
// says that the event does not help.
//
// Where others have a lower priority, the pod must not be able to preempt them either.
// Its last attempt found that it could preempt nobody, on any node, because of the same
// plugins (noVictims). So it may preempt somebody on this node alone now, and a plugin
// has to reject it there whoever goes.
func (m *Machine) wouldFailAgain(e *queue.Entry, event *framework.Event) (wouldFailAgain bool) {
	row, ok := m.rowOf(event)
	p, of := e.Pod, m.profiles[e.Pod.SchedulerName]
	if !ok || of == nil || e.NominatedNode() != "" || m.extendersOf(p) != nil || m.othersMakeRoom(of, p) {
		return false
	}
	preempts := preempts(of, p) && m.table.LowestPriorityOfAll() < p.Priority
	if ps := m.pods[p.UID]; preempts && (ps == nil || !ps.noVictims) {
		return false
	}
	stays := !preempts // whoever goes from the node
	plugin := ""
	defer func() {
		if r := recover(); r != nil { // a plugin's
			m.panicked(recovered.From(fmt.Sprintf("asking plugin %q whether a node helps a pod", plugin), r))
			wouldFailAgain = false
		}
	}()
	for name, pending := range e.RejectedBy() {
		pl := of.Plugins[name]
		plugin = name
		if pl != nil && pl.CellFilter != nil && !pending && !preempts && !mayHelp(pl, p, event) {
			continue // it lets the pod onto no other node than before
		}
		if pl == nil || pending || !answersByNode(pl, m.table, p) {
			return false
		}
		if wouldFailAgain && stays {
			continue // all that is left to ask of the others is whether they answer by the node
		}
		if in, rejects := rejectsOn(pl, m.table, p, row); rejects {
			wouldFailAgain = true
			stays = stays || rejectsWithoutLower(pl, in, row)
		}
	}
	return wouldFailAgain && stays
}

// rowOf is the row of the one node that the event is about.
func (m *Machine) rowOf(e *framework.Event) (table.Row, bool) {
	switch {
	case e.Resource == framework.Node && e.NewNode != nil:
		return m.table.Find(e.NewNode.Name)
	case e.Resource == framework.AssignedPod && e.NewPod != nil:
		return m.table.Find(e.NewPod.NodeName)
	case e.Resource == framework.AssignedPod && e.OldPod != nil:
		return m.table.Find(e.OldPod.NodeName)
	}
	return 0, false
}

// preempts tells whether the profile and the pod let it preempt others.
func preempts(of *profile.Profile, p *object.Pod) bool {
	return !p.NeverPreempts && slices.ContainsFunc(of.PostFilter, func(pl *framework.Plugin) bool { return pl.Name == names.DefaultPreemption })
}

// othersMakeRoom tells whether a PostFilter plugin other than DefaultPreemption may make
// room for the pod: DynamicResources where there are claims to give up, and those of
// which nothing is known.
func (m *Machine) othersMakeRoom(of *profile.Profile, p *object.Pod) bool {
	return slices.ContainsFunc(of.PostFilter, func(pl *framework.Plugin) bool {
		return pl.Name != names.DefaultPreemption && (pl.Name != names.DynamicResources || signsObjects(pl, m.table, p))
	})
}

// noVictims tells whether preemption found nobody whose going would help, on any node,
// because of plugins whose queueing hints are asked. Then no event that may change their
// answer goes unseen.
func noVictims(rejectedBy []string, found []decision.Tally) bool {
	return len(found) > 0 && !slices.ContainsFunc(found, func(t decision.Tally) bool {
		return t.Plugin != "" && !slices.Contains(rejectedBy, t.Plugin) // "": nobody could go, or it would not help
	})
}

// answersByNode tells whether what the plugin's filter says of the pod on a node
// depends on that node and the pods there alone, except for objects that have events
// of their own.
func answersByNode(pl *framework.Plugin, t *table.Table, p *object.Pod) bool {
	if pl.Filter == nil || pl.CellFilter != nil || pl.Epoch != nil || pl.Permit != nil || pl.Reserve != nil {
		return false
	}
	return (pl.Locality == framework.NodeOnly || pl.Locality == framework.NodeAndPods) && !signsObjects(pl, t, p)
}

// mayHelp tells whether the plugin's own hint says so.
func mayHelp(pl *framework.Plugin, p *object.Pod, event *framework.Event) bool {
	return slices.ContainsFunc(pl.EventsToRegister, func(w framework.ClusterEventWithHint) bool {
		return w.Matches(event) && (w.QueueingHintFn == nil || w.QueueingHintFn(p, event))
	})
}

// signsObjects tells whether the plugin's signature of the pod covers other objects,
// such as its claims.
func signsObjects(pl *framework.Plugin, t *table.Table, p *object.Pod) bool {
	if pl.SignRevision == nil {
		return false
	}
	revision, known := pl.SignRevision(t, p)
	return revision != 0 || !known
}

// rejectsOn tells whether the plugin's filter rejects the pod on the row, and what it was
// given.
func rejectsOn(pl *framework.Plugin, t *table.Table, p *object.Pod, row table.Row) (*framework.Input, bool) {
	in := &framework.Input{Table: t, Pod: p}
	if pl.PreFilter != nil {
		out := pl.PreFilter(t, p)
		if out.Skip || out.Status != nil {
			return in, false
		}
		in.State = out.State
	}
	var verdict [1]framework.Verdict
	pl.Filter(in, t.All()[row:row+1], verdict[:])
	return in, isRejection(pl, verdict[0])
}

// rejectsWithoutLower tells of a plugin that rejects the pod on the row whether it would
// also do so if all pods of lower priority went. False: that is not known.
func rejectsWithoutLower(pl *framework.Plugin, in *framework.Input, row table.Row) bool {
	if pl.Locality == framework.NodeOnly {
		return true
	}
	if pl.Exchanged == nil {
		return false
	}
	var lower []*object.Pod
	for _, placed := range in.Table.Pods(row) {
		if placed.Pod.Priority < in.Pod.Priority {
			lower = append(lower, placed.Pod)
		}
	}
	v, known := pl.Exchanged(in, row, lower, nil)
	return known && isRejection(pl, v)
}

// isRejection tells whether the verdict is a rejection, and no failure.
func isRejection(pl *framework.Plugin, v framework.Verdict) bool {
	return v != framework.Fits && (pl.ErrorsFrom == 0 || v < pl.ErrorsFrom)
}

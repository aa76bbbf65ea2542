package machine

import (
	"fmt"
	"slices"

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
// says that the event does not help. The pod may not be able to preempt, as preemption
// may have become possible on other nodes, too.
func (m *Machine) wouldFailAgain(e *queue.Entry, event *framework.Event) (wouldFailAgain bool) {
	row, ok := m.rowOf(event)
	p, of := e.Pod, m.profiles[e.Pod.SchedulerName]
	if !ok || of == nil || e.NominatedNode() != "" || m.extendersOf(p) != nil || m.mayPreempt(of, p) {
		return false
	}
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
		if pl != nil && pl.CellFilter != nil && !pending && !mayHelp(pl, p, event) {
			continue // it lets the pod onto no other node than before
		}
		if pl == nil || pending || !answersByNode(pl, m.table, p) {
			return false
		}
		wouldFailAgain = wouldFailAgain || rejectsOn(pl, m.table, p, row)
	}
	return wouldFailAgain
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

// mayPreempt tells whether a PostFilter plugin may make room for the pod.
func (m *Machine) mayPreempt(of *profile.Profile, p *object.Pod) bool {
	preempts := false
	for _, pl := range of.PostFilter {
		switch {
		case pl.Name == names.DefaultPreemption:
			preempts = !p.NeverPreempts
		case pl.Name != names.DynamicResources || signsObjects(pl, m.table, p):
			return true // it may have claims to give up; nothing is known of other plugins
		}
	}
	return preempts && m.table.LowestPriorityOfAll() < p.Priority
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

// rejectsOn tells whether the plugin's filter rejects the pod on the row.
func rejectsOn(pl *framework.Plugin, t *table.Table, p *object.Pod, row table.Row) bool {
	in := framework.Input{Table: t, Pod: p}
	if pl.PreFilter != nil {
		out := pl.PreFilter(t, p)
		if out.Skip || out.Status != nil {
			return false
		}
		in.State = out.State
	}
	var verdict [1]framework.Verdict
	pl.Filter(&in, t.All()[row:row+1], verdict[:])
	return verdict[0] != framework.Fits && (pl.ErrorsFrom == 0 || verdict[0] < pl.ErrorsFrom)
}

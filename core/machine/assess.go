package machine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/preempt"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// What follows answers questions about pods and does nothing about them. The pod
// asked about is one that the machine knows, or another version of it.

// Assess returns the record that an attempt for the pod would have now. Every node is in the
// record. Pods on their way out for this one make it Preempting.
func (m *Machine) Assess(p *object.Pod) *decision.Decision { return m.assessWith(p, true) }

// AssessBriefly evaluates the pod now, without placing it, and returns the record without
// the list of nodes.
func (m *Machine) AssessBriefly(p *object.Pod) *decision.Decision { return m.assessWith(p, false) }

func (m *Machine) assessWith(p *object.Pod, nodes bool) *decision.Decision {
	d := &decision.Decision{UID: p.UID, Pod: p.NamespacedName(), Profile: p.SchedulerName, Attempt: 1, NodesTotal: m.table.Live(), Result: decision.ResultError}
	if err := m.guard.run("scheduling cycle", "", func() { m.assess(p, d, nodes) }); err != nil {
		d.Result, d.Err = decision.ResultError, err
	}
	return d
}

func (m *Machine) assess(p *object.Pod, d *decision.Decision, nodes bool) {
	of := m.profiles[p.SchedulerName]
	switch {
	case p.Terminating:
		d.Err = errors.New(explain.Deleting(p))
		return
	case of == nil:
		d.Err = fmt.Errorf("no profile has the schedulerName %q", p.SchedulerName)
		return
	}
	if d.PreEnqueueStatus = m.gate(of, p); d.PreEnqueueStatus != nil {
		d.RejectedBy = []string{d.PreEnqueueStatus.Plugin}
	}
	if d.NodesTotal == 0 {
		if d.Result = decision.ResultUnschedulable; d.PreEnqueueStatus != nil {
			d.Result = decision.ResultGated
		}
		return
	}
	o := m.engine.Decide(engine.For(of, p), m.nominations)
	if nodes {
		d.Nodes = o.Nodes()
	}
	for i := range d.Nodes {
		if d.Nodes[i].Feasible {
			d.NodesFeasible++
		}
	}
	switch {
	case d.PreEnqueueStatus != nil:
		d.Result = decision.ResultGated
	case o.Row >= 0:
		d.Result, d.Node, d.Score, d.Ties = decision.ResultScheduled, m.table.Name(o.Row), o.Score, o.Ties
	case o.Rejected != nil && !o.Rejected.Code.Rejects():
		d.Err, d.FailedPoint, d.FailedPlugin = o.Rejected.Err, o.Rejected.Point, o.Rejected.Plugin
	default:
		d.Result, d.Tallies, d.RejectedBy, d.PreFilter = decision.ResultUnschedulable, o.Tallies(), o.RejectedBy(), o.Rejected
		m.assessPostFilter(of, p, o, d)
	}
}

// gate returns what the first PreEnqueue plugin says that holds the pod.
func (m *Machine) gate(of *profile.Profile, p *object.Pod) *decision.Status {
	for _, pl := range of.PreEnqueue {
		if s := pl.PreEnqueue(m.table, p); s != nil && s.Code != decision.Success {
			s.Plugin = pl.Name
			return s
		}
	}
	return nil
}

// assessPostFilter runs the PostFilter plugins and writes their results to the record.
func (m *Machine) assessPostFilter(of *profile.Profile, p *object.Pod, o *engine.Outcome, d *decision.Decision) {
	ps := m.pods.byUID[p.UID]
	if ps == nil {
		ps = &podState{pod: p}
	}
	call := m.scheduling.postFilterCallFor(p, ps, 1, o)
	for _, pl := range of.PostFilter {
		if pl.Name == names.DefaultPreemption && !p.NeverPreempts {
			if leaving := preempt.VictimsLeaving(call); len(leaving) > 0 {
				d.Result, d.NominatedNode, d.Victims = decision.ResultPreempting, call.Nominations.PreemptedNodeName, sortedNames(leaving)
				return
			}
		}
		call.Cache = o.Kept(pl.Name)
		out := pl.PostFilter(call)
		switch {
		case out.Failed:
			d.PostFilter = []string{out.Message}
			return
		case out.NominatedNodeName != "":
			d.Result, d.NominatedNode, d.PostFilter = decision.ResultPreempting, out.NominatedNodeName, nil
			d.Victims = sortedNames(m.podsOf(out))
			return
		}
		if out.Message != "" {
			d.PostFilter = append(d.PostFilter, out.Message)
		}
		if len(out.Writes) > 0 {
			d.Writing = true
		}
		if out.Resolved {
			return
		}
	}
}

func (m *Machine) podsOf(out framework.PostFilterResult) (pods []*object.Pod) {
	for _, uid := range out.Victims {
		if pl := m.table.Pod(uid); pl != nil {
			pods = append(pods, pl.Pod)
		}
	}
	return pods
}

func sortedNames(pods []*object.Pod) []types.NamespacedName {
	sorted := make([]types.NamespacedName, len(pods))
	for i, p := range pods {
		sorted[i] = p.NamespacedName()
	}
	slices.SortFunc(sorted, func(x, y types.NamespacedName) int {
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	return sorted
}

// Admits returns the node on which the pod would be placed now. placed is false if there
// is none. It does not try preemption.
func (m *Machine) Admits(p *object.Pod) (node string, placed bool) {
	of := m.profiles[p.SchedulerName]
	if of == nil || p.Terminating || m.gate(of, p) != nil {
		return "", false
	}
	o := m.engine.Decide(engine.For(of, p), m.nominations)
	if o.Row < 0 || o.Rejected != nil {
		return "", false
	}
	return m.table.Name(o.Row), true
}

// Place decides as Admits does. A pod that fits takes its node's room and what plugins
// reserve for it until undo is called, the last pod's first. undo is nil where the pod does not
// fit.
func (m *Machine) Place(p *object.Pod) (node string, undo func()) {
	node, placed := m.Admits(p)
	if !placed {
		return "", nil
	}
	e := m.Entry(p.UID)
	nominated := e.NominatedNode()
	if nominated != "" {
		m.queue.Nominate(e, "")
	}
	m.table.AddPod(p, node)
	undo = func() {
		m.bindings.unreserve(m.profiles[p.SchedulerName], p, node)
		m.table.RemovePod(p.UID)
		if nominated != "" {
			m.queue.Nominate(e, nominated)
		}
	}
	var status *decision.Status
	err := m.guard.run("Reserve", "", func() { status = m.bindings.reserve(m.profiles[p.SchedulerName], p, node) })
	if err != nil || status != nil {
		undo()
		return "", nil
	}
	return node, undo
}

// PlacesGroups reports whether the pods of a pod group are placed together.
func (m *Machine) PlacesGroups() bool { return m.options.PodGroups }

// AdmitsWithout reports whether the pod would be placed now if no pod were nominated to a
// node and no PreEnqueue plugin gated it.
func (m *Machine) AdmitsWithout(p *object.Pod) bool {
	of := m.profiles[p.SchedulerName]
	if of == nil {
		return false
	}
	o := m.engine.Decide(engine.For(of, p), nil)
	return o.Row >= 0 && o.Rejected == nil
}

// Blockers returns what blocks the pod on one row; nil: it fits there.
func (m *Machine) Blockers(p *object.Pod, row table.Row) []decision.Blocker {
	return m.engine.Blockers(engine.For(m.profiles[p.SchedulerName], p), m.nominations, row)
}

// Profile returns the profile of that name, nil where there is none.
func (m *Machine) Profile(name string) *profile.Profile { return m.profiles[name] }

// Budgets returns all disruption budgets, sorted by namespace, then name.
func (m *Machine) Budgets() []*object.Budget { return m.budgets.list }

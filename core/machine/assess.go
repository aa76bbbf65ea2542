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
	"github.com/berth-scheduler/berth/core/preempt"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// Assessor says what an attempt for a pod would find now, and does nothing about it. The
// pod is one that the machine knows, or another version of it.
type Assessor struct {
	*step
	options     *Options
	profiles    profiles
	unlisted    unlistedKinds
	engine      *engine.Engine
	guard       *guard
	pods        *pods
	nominations *nominations
	bindings    *bindingCycles
	extenders   *extenderCycles
	scheduling  *schedulingCycles
}

// Assess returns the record that an attempt for the pod would have now. Every node is in the
// record. Pods on their way out for this one make it Preempting.
func (q *Assessor) Assess(p *object.Pod) *decision.Decision { return q.assessWith(p, true) }

// AssessBriefly evaluates the pod now, without placing it, and returns the record without
// the list of nodes.
func (q *Assessor) AssessBriefly(p *object.Pod) *decision.Decision { return q.assessWith(p, false) }

func (q *Assessor) assessWith(p *object.Pod, nodes bool) *decision.Decision {
	d := &decision.Decision{UID: p.UID, Pod: p.NamespacedName(), Profile: p.SchedulerName, Attempt: 1, NodesTotal: q.table.Live(), Result: decision.ResultError}
	if err := q.guard.run("scheduling cycle", "", func() { q.assess(p, d, nodes) }); err != nil {
		d.Result, d.Err = decision.ResultError, err
	}
	return d
}

func (q *Assessor) assess(p *object.Pod, d *decision.Decision, nodes bool) {
	of := q.profiles[p.SchedulerName]
	switch {
	case p.Terminating:
		d.Err = errors.New(explain.Deleting(p))
		return
	case of == nil:
		d.Err = fmt.Errorf("no profile has the schedulerName %q", p.SchedulerName)
		return
	}
	if d.PreEnqueueStatus = q.gate(of, p); d.PreEnqueueStatus != nil {
		d.RejectedBy = []string{d.PreEnqueueStatus.Plugin}
	}
	if d.NodesTotal == 0 {
		if d.Result = decision.ResultUnschedulable; d.PreEnqueueStatus != nil {
			d.Result = decision.ResultGated
		}
		return
	}
	o := q.engine.Decide(engine.For(of, p), q.nominations)
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
		d.Result, d.Node, d.Score, d.Ties = decision.ResultScheduled, q.table.Name(o.Row), o.Score, o.Ties
	case o.Rejected != nil && !o.Rejected.Code.Rejects():
		d.Err, d.FailedPoint, d.FailedPlugin = o.Rejected.Err, o.Rejected.Point, o.Rejected.Plugin
	default:
		d.Result, d.Tallies, d.RejectedBy, d.PreFilter = decision.ResultUnschedulable, o.Tallies(), o.RejectedBy(), o.Rejected
		q.assessPostFilter(of, p, o, d)
	}
}

// gate returns what the first PreEnqueue plugin says that holds the pod.
func (q *Assessor) gate(of *profile.Profile, p *object.Pod) *decision.Status {
	for _, pl := range of.PreEnqueue {
		if s := pl.PreEnqueue(q.table, p); s != nil && s.Code != decision.Success {
			s.Plugin = pl.Name
			return s
		}
	}
	return nil
}

// assessPostFilter runs the PostFilter plugins and writes their results to the record.
func (q *Assessor) assessPostFilter(of *profile.Profile, p *object.Pod, o *engine.Outcome, d *decision.Decision) {
	ps := q.pods.byUID[p.UID]
	if ps == nil {
		ps = &podState{pod: p}
	}
	call := q.scheduling.postFilterCallFor(p, ps, 1, o)
	for _, pl := range of.PostFilter {
		if pl.Remedy(q.table, p) == framework.Preemption {
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
			d.Victims = sortedNames(q.podsOf(out))
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

func (q *Assessor) podsOf(out framework.PostFilterResult) (pods []*object.Pod) {
	for _, uid := range out.Victims {
		if pl := q.table.Pod(uid); pl != nil {
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
func (q *Assessor) Admits(p *object.Pod) (node string, placed bool) {
	of := q.profiles[p.SchedulerName]
	if of == nil || p.Terminating || q.gate(of, p) != nil {
		return "", false
	}
	o := q.engine.Decide(engine.For(of, p), q.nominations)
	if o.Row < 0 || o.Rejected != nil {
		return "", false
	}
	return q.table.Name(o.Row), true
}

// Place decides as Admits does. A pod that fits takes its node's room and what plugins
// reserve for it until undo is called, the last pod's first. undo is nil where the pod does not
// fit.
func (q *Assessor) Place(p *object.Pod) (node string, undo func()) {
	node, placed := q.Admits(p)
	if !placed {
		return "", nil
	}
	e := q.pods.entry(p.UID)
	nominated := e.NominatedNode()
	if nominated != "" {
		q.queue.Nominate(e, "")
	}
	q.table.AddPod(p, node)
	undo = func() {
		q.bindings.unreserve(q.profiles[p.SchedulerName], p, node)
		q.table.RemovePod(p.UID)
		if nominated != "" {
			q.queue.Nominate(e, nominated)
		}
	}
	var status *decision.Status
	err := q.guard.run("Reserve", "", func() { status = q.bindings.reserve(q.profiles[p.SchedulerName], p, node) })
	if err != nil || status != nil {
		undo()
		return "", nil
	}
	return node, undo
}

// AdmitsWithout reports whether the pod would be placed now if no pod were nominated to a
// node and no PreEnqueue plugin gated it.
func (q *Assessor) AdmitsWithout(p *object.Pod) bool {
	of := q.profiles[p.SchedulerName]
	if of == nil {
		return false
	}
	o := q.engine.Decide(engine.For(of, p), nil)
	return o.Row >= 0 && o.Rejected == nil
}

// Blockers returns what blocks the pod on one row; nil: it fits there.
func (q *Assessor) Blockers(p *object.Pod, row table.Row) []decision.Blocker {
	return q.engine.Blockers(engine.For(q.profiles[p.SchedulerName], p), q.nominations, row)
}

package machine

import (
	"cmp"
	"errors"
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

// Assessor answers what an attempt to schedule a pod would find now. Only Place changes the
// machine, until its undo is called. The pod is one that the machine knows, or another version of
// it.
type Assessor struct {
	*step
	profiles    profiles
	unlisted    unlistedKinds
	engine      *engine.Engine
	guard       *guard
	pods        *pods
	nominations *nominations
	bindings    *bindingCycles
	extenders   *extenderCycles
	scheduling  *schedulingCycles
	groups      *podGroups
}

// Assess returns the record that an attempt for the pod would have now, with an entry for every
// node. It evicts and writes nothing, and calls no extender. The result is Preempting if preemption
// would help the pod, or if victims that it has preempted are still leaving. A pod that PreEnqueue
// gates is evaluated on the nodes, too.
func (q *Assessor) Assess(p *object.Pod) *decision.Decision { return q.assessWith(p, true) }

// AssessBriefly evaluates the pod now, without placing it, and returns the record without Nodes and
// NodesFeasible.
func (q *Assessor) AssessBriefly(p *object.Pod) *decision.Decision { return q.assessWith(p, false) }

// assessWith implements Assess and, if nodes is false, AssessBriefly. If a plugin panics, the
// record has Result Error.
func (q *Assessor) assessWith(p *object.Pod, nodes bool) *decision.Decision {
	p = q.groups.member(p)
	d := &decision.Decision{UID: p.UID, Pod: p.NamespacedName(), Profile: p.SchedulerName, Attempt: 1, NodesTotal: q.table.Live(), Result: decision.ResultError}
	if err := q.guard.run("scheduling cycle", "", func() { q.assess(p, d, nodes) }); err != nil {
		d.Result, d.Err = decision.ResultError, err
	}
	return d
}

// assess fills the record d for the pod, with Nodes and NodesFeasible if nodes is true. It may
// panic with a plugin.
func (q *Assessor) assess(p *object.Pod, d *decision.Decision, nodes bool) {
	of := q.profiles[p.SchedulerName]
	switch {
	case p.Terminating:
		d.Err = errors.New(explain.Deleting(p))
		return
	case of == nil:
		d.Err = errors.New(explain.NoProfile(p.SchedulerName))
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

// gate returns the status of the first PreEnqueue plugin that gates the pod; nil if none
// does.
func (q *Assessor) gate(of *profile.Profile, p *object.Pod) *decision.Status {
	for _, pl := range of.PreEnqueue {
		if s := pl.PreEnqueue(q.table, p); s != nil && s.Code != decision.Success {
			s.Plugin = pl.Name
			return s
		}
	}
	return nil
}

// assessPostFilter runs the PostFilter plugins and writes to the record what they would do.
// d.Result becomes Preempting if one nominates the pod to a node, or if victims of the pod are
// still leaving.
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
		call.Searched = call.Searched || out.Preemption
		switch {
		case out.Failed:
			d.PostFilter = []string{out.Message}
			return
		case out.NominatedNodeName != "":
			d.Result, d.NominatedNode, d.PostFilter = decision.ResultPreempting, out.NominatedNodeName, out.Messages()
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

// podsOf returns the victims in the result that are still on a node.
func (q *Assessor) podsOf(out framework.PostFilterResult) (pods []*object.Pod) {
	for _, uid := range out.Victims {
		if pl := q.table.Pod(uid); pl != nil {
			pods = append(pods, pl.Pod)
		}
	}
	return pods
}

// sortedNames returns the pods' names, sorted by namespace, then name.
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

// Admits returns the node on which the pod would be placed now. placed is false if there is none,
// as for a pod that is being deleted, that PreEnqueue gates, or that no profile is for. It tries no
// preemption and calls no extender.
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

// Place places the pod in memory on the node that Admits returns, and runs Reserve plugins. undo
// takes all of that back; undo several pods in reverse order. The pod's own nomination is lifted
// until then. undo is nil if no node fits or a Reserve plugin rejects the pod; nothing has changed
// then.
func (q *Assessor) Place(p *object.Pod) (node string, undo func()) {
	p = q.groups.member(p)
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

// Blockers returns the plugins that reject the pod on the node of the row, with their reasons; nil
// if it fits there. Nominated pods count. There must be a profile for the pod.
func (q *Assessor) Blockers(p *object.Pod, row table.Row) []decision.Blocker {
	return q.engine.Blockers(engine.For(q.profiles[p.SchedulerName], p), q.nominations, row)
}

// TryFit runs the Filter plugins of a profile, except for hosted ones, for the pod on a node that
// holds just the listed pods. Nominations do not count. It returns nil if the pod fits, and an
// error if there is no such node or profile. The pod's schedulerName need not be the profile's.
func (q *Assessor) TryFit(profileName string, p *object.Pod, node string, pods []*object.Pod) *decision.Status {
	profile := q.profiles[profileName]
	r, known := q.table.Find(node)
	if !known || profile == nil || q.table.Node(r) == nil {
		return decision.Failed("node %q or profile %q does not exist", node, profileName)
	}
	mark := q.table.Checkpoint()
	defer q.table.Undo(mark)
	wanted := map[types.UID]bool{}
	for _, other := range pods {
		wanted[other.UID] = true
	}
	for _, pl := range slices.Clone(q.table.Pods(r)) {
		if !wanted[pl.Pod.UID] {
			q.table.RemovePod(pl.Pod.UID)
		}
		delete(wanted, pl.Pod.UID)
	}
	for _, other := range pods {
		if wanted[other.UID] {
			q.table.AddPod(other, node)
		}
	}
	return q.engine.Fit(engine.For(profile, p), r)
}

// TryScores returns, by node name, the scores that the native Score plugins of a profile give these
// nodes for the pod now, normalised over these nodes. It leaves out nodes that do not exist. The
// status says why there are no scores: no such profile, or PreFilter or PreScore rejects the pod.
func (q *Assessor) TryScores(profileName string, p *object.Pod, nodes []string) (map[string][]decision.Score, *decision.Status) {
	profile := q.profiles[profileName]
	if profile == nil {
		return nil, decision.Failed("profile %q does not exist", profileName)
	}
	return q.engine.ScoresOf(engine.For(profile, p), nodes)
}

// Signature returns the signature of the pod by the native plugins of a profile: equal
// for pods that they cannot tell apart. It returns false if there is no such profile.
func (q *Assessor) Signature(profileName string, p *object.Pod) (string, bool) {
	profile := q.profiles[profileName]
	if profile == nil {
		return "", false
	}
	return q.engine.Signature(engine.For(profile, p)), true
}

// PresentCondition returns the PodScheduled condition that an attempt would write now if it found
// the pod unschedulable. It returns nil if the attempt would end otherwise, or if only an attempt
// can tell, as for pod groups and for pods with extenders or hosted plugins.
func (q *Assessor) PresentCondition(p *object.Pod) *object.Condition {
	of := q.profiles[p.SchedulerName]
	if of == nil || of.Host != nil || q.groups.has(p) || q.extenders.of(p) != nil {
		return nil
	}
	d := q.AssessBriefly(p)
	if d.Result != decision.ResultUnschedulable || d.Writing || q.unlisted.undecidable(q.table, of, p) != nil {
		return nil
	}
	return explain.Condition(d)
}

// Comparison compares the node that another scheduler chose for a pod with the node that an
// attempt would choose.
type Comparison struct {
	// Node is the node that an attempt would choose now; "" if none fits. Ties is the number of
	// nodes with its score, itself included.
	Node                      string
	Ties                      int
	NodesFeasible, NodesTotal int
	// Best is the evaluation of Node, Other that of the other scheduler's choice. They are
	// set only if the two nodes differ, and Best only if Node is.
	Best, Other decision.Node
	// Err is why the pod cannot be decided on; nothing else is known then.
	Err error
}

// Compare compares the node that an attempt would choose for the pod now with other, the name of
// the node that another scheduler has chosen for it, to report where the two schedulers differ. It
// ignores the pod's own nomination. Comparison.Err is set for pods that cannot be decided on, such
// as those with extenders.
func (q *Assessor) Compare(p *object.Pod, other string) Comparison {
	c := Comparison{NodesTotal: q.table.Live()}
	if err := q.guard.run("scheduling cycle", "", func() { q.compare(p, other, &c) }); err != nil {
		return Comparison{Err: err}
	}
	return c
}

// compare writes the comparison of the pod's best node with other to c. It may panic with a
// plugin.
func (q *Assessor) compare(p *object.Pod, other string, c *Comparison) {
	of := q.profiles[p.SchedulerName]
	switch {
	case of == nil:
		c.Err = errors.New(explain.NoProfile(p.SchedulerName))
		return
	case q.extenders.of(p) != nil:
		c.Err = errors.New("an extender is interested in the pod")
		return
	}
	if p.NominatedNode != "" {
		free := *p
		free.NominatedNode, p = "", &free
	}
	if s := q.unlisted.undecidable(q.table, of, p); s != nil {
		c.Err = s.Err
		return
	}
	if s := q.gate(of, p); s != nil {
		c.Other = decision.Node{Name: other, Blockers: []decision.Blocker{{Plugin: s.Plugin, Code: s.Code, Reasons: s.Reasons}}}
		return
	}
	o := q.engine.Decide(engine.For(of, p), q.nominations)
	defer q.engine.Reuse(o)
	if o.Rejected != nil && !o.Rejected.Code.Rejects() {
		c.Err = o.Rejected.Err
		return
	}
	c.NodesFeasible, c.Ties = o.Feasible, max(o.Ties, min(o.Feasible, 1))
	if o.Row >= 0 {
		c.Node = q.table.Name(o.Row)
	}
	if c.Node == other {
		return
	}
	if o.Row >= 0 {
		c.Best = o.Node(o.Row)
	}
	if row, known := q.table.Find(other); known {
		c.Other = o.Node(row)
	} else {
		c.Other = decision.Node{Name: other, Blockers: []decision.Blocker{{Reasons: []string{"the node is not known"}}}}
	}
}

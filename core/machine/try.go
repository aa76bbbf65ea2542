package machine

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/object"
)

// TryFit runs the filters of a profile, except for hosted ones, for the pod on a node
// while the pods that are listed, and no others, are placed there. nil: the pod fits.
// The pod may name another scheduler.
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

// TryScores returns what the native score plugins of a profile give the nodes for the pod
// now, normalised over these nodes.
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

// PresentCondition returns the condition that an attempt would give an unschedulable pod
// now. It returns nil if the attempt would end otherwise, or only an attempt can tell, as
// for pod groups and for pods with extenders or hosted plugins.
func (q *Assessor) PresentCondition(p *object.Pod) *object.Condition {
	of := q.profiles[p.SchedulerName]
	if of == nil || of.Host != nil || q.options.hasGroup(p) || q.extenders.of(p) != nil {
		return nil
	}
	d := q.AssessBriefly(p)
	if d.Result != decision.ResultUnschedulable || d.Writing || q.unlisted.undecidable(q.table, of, p) != nil {
		return nil
	}
	return explain.Condition(d)
}

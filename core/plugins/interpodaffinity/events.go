package interpodaffinity

import (
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
)

// eventsToRegister returns the events that may help a rejected pod: pods come, go or
// change labels, as do nodes; labels of namespaces or of the pod itself change. There
// are more than in v1.37 (its faults R1-R3): namespace selectors count, and so does an
// event after which the pod may be the first that its affinity matches.
func eventsToRegister() []framework.ClusterEventWithHint {
	return []framework.ClusterEventWithHint{
		{Resource: framework.AssignedPod, ActionType: framework.Add | framework.Delete | framework.UpdatePodLabel, QueueingHintFn: podChanged},
		{Resource: framework.TargetPod, ActionType: framework.UpdatePodLabel},
		{
			Resource:       framework.Node,
			ActionType:     framework.Add | framework.Delete | framework.UpdateNodeLabel,
			QueueingHintFn: nodeChanged,
		},
		{Resource: framework.Namespace, ActionType: framework.UpdateNamespaceLabel, QueueingHintFn: namespaceChanged},
	}
}

// podChanged reports whether a change of another pod may help the rejected pod p. The other pod has
// or is nominated to a node. These changes help: a pod comes that p wants near; one goes that p
// wants away, or that wants p away; or one goes that p wants near, if p may then be the first of
// its group. A label gained or lost counts as coming or going.
func podChanged(p *object.Pod, e *framework.Event) bool {
	old, now := e.OldPod, e.NewPod
	if !hasNode(old) && !hasNode(now) {
		return false
	}
	if a := p.Affinity; a != nil && a.Invalid == nil {
		was, is := mayMatchAll(a.Affinity, old), mayMatchAll(a.Affinity, now)
		if is && !was || was && !is && mayMatchAll(a.Affinity, p) {
			return true
		}
		if slices.ContainsFunc(a.AntiAffinity, func(t match.PodTerm) bool { return mayMatch(&t, old) && !mayMatch(&t, now) }) {
			return true
		}
	}
	return now == nil && old.Affinity != nil &&
		slices.ContainsFunc(old.Affinity.AntiAffinity, func(t match.PodTerm) bool { return mayMatch(&t, p) })
}

// hasNode reports whether the pod has or is nominated to a node; false for nil.
func hasNode(p *object.Pod) bool { return p != nil && (p.NodeName != "" || p.NominatedNode != "") }

// mayMatch reports whether the term selects the pod, or would with other namespace
// labels; false for nil.
func mayMatch(t *match.PodTerm, p *object.Pod) bool {
	return p != nil && t.MayMatch(p.Namespace, p.Labels)
}

// mayMatchAll reports whether there are terms and each selects the pod, or would with other
// namespace labels; false for nil.
func mayMatchAll(terms []match.PodTerm, p *object.Pod) bool {
	for i := range terms {
		if !mayMatch(&terms[i], p) {
			return false
		}
	}
	return len(terms) > 0
}

// nodeChanged reports whether a node was added, deleted or changed its labels, and so
// its domains. Which labels matter is not known, as other pods' terms may keep the pod
// away.
func nodeChanged(_ *object.Pod, e *framework.Event) bool {
	return e.OldNode == nil || e.NewNode == nil || !maps.Equal(e.OldNode.Labels, e.NewNode.Labels)
}

// namespaceChanged reports whether a change of a namespace's labels may help the pod p: it is p's
// own namespace, which other pods' terms may no longer select, or a required term of p selects it
// only before or only after. It is false if p's affinity does not parse.
func namespaceChanged(p *object.Pod, e *framework.Event) bool {
	old, now := e.OldNamespace.Labels, e.NewNamespace.Labels
	if p.Affinity != nil && p.Affinity.Invalid != nil {
		return false
	}
	if p.Namespace == e.NewNamespace.Name {
		return true
	}
	return p.Affinity != nil && slices.ContainsFunc(p.Affinity.Terms, func(t match.PodTerm) bool {
		return t.Kind != match.PreferredPods && t.SelectsNamespaceLabels(old) != t.SelectsNamespaceLabels(now)
	})
}

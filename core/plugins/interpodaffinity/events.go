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

// podChanged reports whether a change of a pod, which has or is nominated to a node, may
// help the rejected pod. These help: a pod comes that it wants near; one goes that it
// wants away, or that wants it away; or the last goes that it wants near, if it may then
// be the first of its group. A label gained or lost counts as coming or going.
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

// mayMatchAll reports whether there are terms and mayMatch is true for each.
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

// namespaceChanged reports whether a change of a namespace's labels may help the pod:
// it is the pod's own namespace, which other pods' terms may no longer select, or a
// required term of the pod selects it only before or only after.
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

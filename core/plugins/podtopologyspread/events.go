package podtopologyspread

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
)

// eventsToRegister returns the events that may help a rejected pod: pods that count are
// added, deleted, begin to terminate or change labels; nodes are added, deleted, or
// change whether and where they count; the pod itself changes, or the Services and
// controllers that select it.
func (pl *plugin) eventsToRegister() []framework.ClusterEventWithHint {
	pods := framework.Add | framework.Delete | framework.UpdatePodLabel | framework.UpdatePodTerminating
	owners := framework.Add | framework.Delete | framework.UpdateSelector
	return []framework.ClusterEventWithHint{
		{Resource: framework.AssignedPod, ActionType: pods, QueueingHintFn: pl.podChanged},
		{Resource: framework.TargetPod, ActionType: framework.UpdatePod, QueueingHintFn: pl.selfChanged},
		{Resource: framework.SelectorOwner, ActionType: owners, QueueingHintFn: defaultSelectorChanged},
		{
			Resource:       framework.Node,
			ActionType:     framework.Add | framework.Delete | framework.UpdateNodeLabel | framework.UpdateNodeTaint,
			QueueingHintFn: pl.nodeChanged,
		},
	}
}

// known returns the pod's own hard constraints. It returns false if the profile's constraints
// apply, or if its own do not parse. It is not known then what the constraints select, and every
// event that may concern the pod queues it.
func (pl *plugin) known(p *object.Pod) ([]match.SpreadConstraint, bool) {
	s := pl.spread(p)
	if s == nil || s.HardInvalid != nil {
		return nil, false
	}
	return s.Hard, true
}

// podChanged reports whether a change of a pod that has, or is nominated to, a node may help the
// rejected pod p. It is false for pods of other namespaces.
func (pl *plugin) podChanged(p *object.Pod, e *framework.Event) bool {
	if cmp.Or(e.NewPod, e.OldPod).Namespace != p.Namespace {
		return false
	}
	constraints, ok := pl.known(p)
	if e.OldPod == nil || e.NewPod == nil {
		other := e.OldPod
		if other == nil {
			other = e.NewPod
		}
		return !ok || selectedByAny(constraints, other)
	}
	if e.NewPod.Terminating && !e.OldPod.Terminating && (!ok || selectedByAny(constraints, e.OldPod)) {
		return true
	}
	return relabelled(constraints, ok, e)
}

// selfChanged reports whether an update of the rejected pod p may help it.
func (pl *plugin) selfChanged(p *object.Pod, e *framework.Event) bool {
	constraints, ok := pl.known(p)
	return pl.changed(constraints, ok, e.OldPod, e.NewPod) || relabelled(constraints, ok, e)
}

// relabelled reports whether the labels of the updated pod changed so that a constraint counts it
// only before or only after. If ok is false, the constraints are not known, and any change of
// labels counts.
func relabelled(constraints []match.SpreadConstraint, ok bool, e *framework.Event) bool {
	if maps.Equal(e.OldPod.Labels, e.NewPod.Labels) {
		return false
	}
	return !ok || slices.ContainsFunc(constraints, func(c match.SpreadConstraint) bool {
		return c.Selector.Matches(labels.Set(e.OldPod.Labels)) != c.Selector.Matches(labels.Set(e.NewPod.Labels))
	})
}

// changed reports whether an update of the rejected pod, from old to now, changed its constraints
// or what they count. constraints and ok are those of known, after the update. With matchLabelKeys
// the pod's labels are part of its constraints. If the pod had or has none of its own, its
// controller and tolerations decide.
func (pl *plugin) changed(constraints []match.SpreadConstraint, ok bool, old, now *object.Pod) bool {
	if old.Tolerations.Key != now.Tolerations.Key && (!ok || anyHonorsTaints(constraints)) {
		return true
	}
	if old.Spread == nil || now.Spread == nil {
		return old.Controller != now.Controller
	}
	return pl.spread(old).Key != pl.spread(now).Key
}

// selectedByAny reports whether the selector of a constraint matches the pod.
func selectedByAny(list []match.SpreadConstraint, p *object.Pod) bool {
	return slices.ContainsFunc(list, func(c match.SpreadConstraint) bool { return c.Selector.Matches(labels.Set(p.Labels)) })
}

// anyHonorsTaints reports whether a constraint has nodeTaintsPolicy Honor.
func anyHonorsTaints(list []match.SpreadConstraint) bool {
	return slices.ContainsFunc(list, func(c match.SpreadConstraint) bool { return c.HonorTaints })
}

// defaultSelectorChanged reports whether the changed Service or controller may change the default
// constraints of the rejected pod. It is false for a pod with constraints of its own. A Service
// counts if it is in the pod's namespace, whatever it selects; a controller counts if the pod's
// ownerReferences name it.
func defaultSelectorChanged(p *object.Pod, e *framework.Event) bool {
	return p.Spread == nil && (mayBeOf(p, e.OldSelectorOwner) || mayBeOf(p, e.NewSelectorOwner))
}

// mayBeOf reports whether f is a Service in the pod's namespace or the pod's
// controller; false for nil.
func mayBeOf(p *object.Pod, f *object.SelectorOwner) bool {
	if f == nil || f.Namespace != p.Namespace {
		return false
	}
	return f.Kind == object.Service || f.Kind == p.Controller.Kind && f.Name == p.Controller.Name
}

// nodeChanged reports whether a change of a node may help the pod p. Only a node that has, or had,
// the topology labels of all constraints can help. An update helps if it changed one of these
// labels, the taints, or whether p's node selector and affinity match the node. If p's constraints
// are not known, every change may help.
func (pl *plugin) nodeChanged(p *object.Pod, e *framework.Event) bool {
	constraints, ok := pl.known(p)
	had, has := labelled(constraints, e.OldNode), labelled(constraints, e.NewNode)
	if !ok || e.OldNode == nil || e.NewNode == nil {
		return !ok || had || has
	}
	if had != has {
		return true
	}
	return has && (framework.NodeSchedulingPropertiesChange(e.OldNode, e.NewNode)&framework.UpdateNodeTaint != 0 ||
		p.RequiredNodes.Matches(e.OldNode.Subject()) != p.RequiredNodes.Matches(e.NewNode.Subject()) ||
		slices.ContainsFunc(constraints, func(c match.SpreadConstraint) bool {
			return e.OldNode.Labels[c.TopologyKey] != e.NewNode.Labels[c.TopologyKey]
		}))
}

// labelled reports whether the node has the topology labels of all constraints; false
// for nil.
func labelled(list []match.SpreadConstraint, n *object.Node) bool {
	return n != nil && !slices.ContainsFunc(list, func(c match.SpreadConstraint) bool {
		_, ok := n.Labels[c.TopologyKey]
		return !ok
	})
}

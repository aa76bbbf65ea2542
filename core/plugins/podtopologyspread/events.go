package podtopologyspread

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
)

// eventsToRegister returns the events: pods that count come, go, begin to terminate or
// change their labels; nodes come, go, or change in whether and where they count; the pod
// itself changes, or the owners that decide, for the profile's constraints, which pods
// count.
func (pl *plugin) eventsToRegister() []framework.ClusterEventWithHint {
	pods := framework.Add | framework.Delete | framework.UpdatePodLabel | framework.UpdatePodTerminating
	owners := framework.Add | framework.Delete | framework.UpdateSelector
	return []framework.ClusterEventWithHint{
		{Resource: framework.AssignedPod, ActionType: pods, QueueingHintFn: pl.podChanged},
		{Resource: framework.UnscheduledPod, ActionType: framework.Add | framework.Delete | framework.UpdatePod, QueueingHintFn: pl.podChanged},
		{Resource: framework.SelectorOwner, ActionType: owners, QueueingHintFn: selectorChanged},
		{
			Resource:       framework.Node,
			ActionType:     framework.Add | framework.Delete | framework.UpdateNodeLabel | framework.UpdateNodeTaint,
			QueueingHintFn: pl.nodeChanged,
		},
	}
}

// known returns the pod's hard constraints. Where they are the profile's, or
// do not parse, nobody can say here what they select, and every event that may
// concern the pod queues it.
func (pl *plugin) known(p *object.Pod) ([]match.SpreadConstraint, bool) {
	s := pl.spread(p)
	if s == nil || s.HardInvalid != nil {
		return nil, false
	}
	return s.Hard, true
}

func (pl *plugin) podChanged(p *object.Pod, e *framework.Event) bool {
	if e.OldPod != nil && !concerns(e.OldPod, p) || e.NewPod != nil && !concerns(e.NewPod, p) {
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
	if e.NewPod.UID == p.UID && pl.changed(constraints, ok, e.OldPod, e.NewPod) {
		return true
	}
	if e.NewPod.Terminating && !e.OldPod.Terminating && (!ok || selectedByAny(constraints, e.OldPod)) {
		return true
	}
	if maps.Equal(e.OldPod.Labels, e.NewPod.Labels) {
		return false
	}
	return !ok || slices.ContainsFunc(constraints, func(c match.SpreadConstraint) bool {
		return c.Selector.Matches(labels.Set(e.OldPod.Labels)) != c.Selector.Matches(labels.Set(e.NewPod.Labels))
	})
}

// changed reports whether an update of the rejected pod changed what its constraints
// count. The constraints given are those after the update. With matchLabelKeys the pod's
// own labels are part of its constraints.
func (pl *plugin) changed(constraints []match.SpreadConstraint, ok bool, old, now *object.Pod) bool {
	if old.Tolerations.Key != now.Tolerations.Key && (!ok || anyHonorsTaints(constraints)) {
		return true
	}
	if old.Spread == nil || now.Spread == nil {
		return old.Controller != now.Controller
	}
	return pl.spread(old).Key != pl.spread(now).Key
}

// concerns reports whether the changed pod is the rejected one, or one of its namespace
// that has, or is nominated to, a node.
func concerns(changed, rejected *object.Pod) bool {
	return changed.UID == rejected.UID ||
		changed.Namespace == rejected.Namespace && (changed.NodeName != "" || changed.NominatedNode != "")
}

func selectedByAny(list []match.SpreadConstraint, p *object.Pod) bool {
	return slices.ContainsFunc(list, func(c match.SpreadConstraint) bool { return c.Selector.Matches(labels.Set(p.Labels)) })
}

func anyHonorsTaints(list []match.SpreadConstraint) bool {
	return slices.ContainsFunc(list, func(c match.SpreadConstraint) bool { return c.HonorTaints })
}

// selectorChanged reports whether the profile's constraints depend on the changed Service
// or controller: it selects the pod, or did.
func selectorChanged(p *object.Pod, e *framework.Event) bool {
	return p.Spread == nil && (mayBeOf(p, e.OldSelectorOwner) || mayBeOf(p, e.NewSelectorOwner))
}

func mayBeOf(p *object.Pod, f *object.SelectorOwner) bool {
	if f == nil || f.Namespace != p.Namespace {
		return false
	}
	return f.Kind == object.Service || f.Kind == p.Controller.Kind && f.Name == p.Controller.Name
}

// nodeChanged reports whether a change of a node may help the pod. The node must have all
// labels that the constraints need, or have had them. An update helps only if it changes
// that, one of these labels, the taints, or whether the pod selects the node: only such
// nodes count.
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

func labelled(list []match.SpreadConstraint, n *object.Node) bool {
	return n != nil && !slices.ContainsFunc(list, func(c match.SpreadConstraint) bool {
		_, ok := n.Labels[c.TopologyKey]
		return !ok
	})
}

package fix

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/workload"
)

// untolerated are the places of the node's taints that keep the pod away: all of them, or
// one more than a fix may lift.
func (s *search) untolerated(node string) (at []int) {
	n := s.nodes[node]
	if n == nil {
		return nil
	}
	for i := range n.Spec.Taints {
		if !s.pod.Tolerations.Admits(n.Spec.Taints[i:i+1], false) {
			if at = append(at, i); len(at) > mostEdits {
				break
			}
		}
	}
	return at
}

// tolerate adds tolerations of the row's node's taints to the pod, or removes the taints from the
// node. It lifts a cordon, and keeps what a condition sets.
func (s *search) tolerate(row table.Row) [][]edit {
	var corrections, tolerations, untaints []edit
	corrected := false
	n := s.nodes[s.table.Name(row)]
	lacking := s.untolerated(s.table.Name(row))
	if len(lacking) > mostEdits {
		all := map[string]any{"operator": string(v1.TolerationOpExists)}
		return [][]edit{{{kind: addToleration, say: "tolerate every taint", ops: []Op{{Op: "add", Path: "/spec/tolerations/-", Value: all}}}}}
	}
	lift := func(e edit) {
		corrections, tolerations, untaints = append(corrections, e), append(tolerations, e), append(untaints, e)
	}
	for _, i := range lacking {
		switch t := &n.Spec.Taints[i]; {
		case workload.Condition(t.Key) != "":
			return nil // another pod than this one cannot start there either
		case t.Key == v1.TaintNodeUnschedulable && n.Spec.Unschedulable:
			lift(s.uncordoned(row))
		case t.Key == v1.TaintNodeUnschedulable || t.Key == v1.TaintNodeOutOfService:
			lift(s.untaint(row, i))
		default:
			correct := toleration(t)
			if place, right, wrong, ok := MeantToleration(s.spec.Tolerations, t); ok {
				correct, corrected = s.corrected(place, &right, wrong, t), true
			}
			corrections = append(corrections, correct)
			tolerations, untaints = append(tolerations, toleration(t)), append(untaints, s.untaint(row, i))
		}
	}
	if corrected {
		return [][]edit{corrections, tolerations, untaints}
	}
	return [][]edit{tolerations, untaints}
}

// untaint removes the taint at a place of the row's node.
func (s *search) untaint(row table.Row, place int) edit {
	n := s.nodes[s.table.Name(row)]
	t := &n.Spec.Taints[place]
	e := s.nodeEdit(row, fmt.Sprintf("remove the taint %s from node %s", taintText(t), n.Name), Op{Op: "remove", Path: at("/spec/taints/%d", place)})
	switch {
	case isControlPlane(t):
		e.stage = lastResort
	case s.leftBehind(n, t):
		e.stage = undoes
	}
	return e
}

// leftBehind reports whether only some nodes of the node's pool have the taint. Where no label
// names the pool, fewer than half of its nodes may have it, or the node is cordoned, as after a
// drain, and no schedulable node has it; a taint for hardware may then be meant so. Roles are given to
// nodes for good.
func (s *search) leftBehind(n *v1.Node, t *v1.Taint) bool {
	if strings.HasPrefix(t.Key, "node-role.kubernetes.io/") || !s.spend(1+len(s.nodes)/20) {
		return false
	}
	pool, named := workload.MadeFor(n)
	all, tainted := 0, 0
	drained := n.Spec.Unschedulable
	for _, other := range s.nodes { // any order: they are counted
		has := slices.ContainsFunc(other.Spec.Taints, func(o v1.Taint) bool { return o.MatchTaint(t) && o.Value == t.Value })
		drained = drained && !(has && !other.Spec.Unschedulable)
		if of, _ := workload.MadeFor(other); of != pool {
			continue
		}
		all++
		if has {
			tainted++
		}
	}
	if named && tainted < all {
		return true
	}
	return !ofHardware(t.Key) && (2*tainted < all || drained)
}

// isControlPlane reports whether the taint keeps a node for the control plane.
func isControlPlane(t *v1.Taint) bool {
	return t.Key == "node-role.kubernetes.io/control-plane" || t.Key == "node-role.kubernetes.io/master"
}

func toleration(t *v1.Taint) edit {
	value := map[string]any{"key": t.Key, "operator": "Exists", "effect": string(t.Effect)}
	if t.Value != "" {
		value["operator"], value["value"] = "Equal", t.Value
	}
	e := edit{kind: addToleration, say: "tolerate the taint " + taintText(t), ops: []Op{{Op: "add", Path: "/spec/tolerations/-", Value: value}}}
	if isControlPlane(t) {
		e.stage = lastResort
	}
	return e
}

func taintText(t *v1.Taint) string {
	if t.Value == "" {
		return fmt.Sprintf("%s:%s", t.Key, t.Effect)
	}
	return fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
}

// uncordoned returns the edit that lifts the cordon of the row's node, with the taint that came
// with it.
func (s *search) uncordoned(row table.Row) edit {
	n := s.nodes[s.table.Name(row)]
	e := s.nodeEdit(row, "uncordon node "+n.Name, Op{Op: "remove", Path: "/spec/unschedulable"})
	for i := range n.Spec.Taints {
		if n.Spec.Taints[i].Key == v1.TaintNodeUnschedulable && !s.pod.Tolerations.Admits(n.Spec.Taints[i:i+1], false) {
			e.ops = append(e.ops, Op{Op: "remove", Path: at("/spec/taints/%d", i)})
		}
	}
	e.stage = undoes
	return e
}

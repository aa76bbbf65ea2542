package fix

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/table"
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

// tolerate has the pod tolerate the taints of the row's node, or the node lose them.
func (s *search) tolerate(row table.Row) [][]edit {
	var tolerations, untaints []edit
	n := s.nodes[s.table.Name(row)]
	lacking := s.untolerated(s.table.Name(row))
	if len(lacking) > mostEdits {
		all := map[string]any{"operator": string(v1.TolerationOpExists)}
		return [][]edit{{{kind: addToleration, say: "tolerate every taint", ops: []Op{{Op: "add", Path: "/spec/tolerations/-", Value: all}}}}}
	}
	for _, i := range lacking {
		t := &n.Spec.Taints[i]
		tolerations = append(tolerations, toleration(t))
		untaints = append(untaints, s.nodeEdit(row, fmt.Sprintf("remove the taint %s from node %s", taintText(t), n.Name),
			Op{Op: "remove", Path: at("/spec/taints/%d", i)}))
	}
	return [][]edit{tolerations, untaints}
}

func toleration(t *v1.Taint) edit {
	value := map[string]any{"key": t.Key, "operator": "Exists", "effect": string(t.Effect)}
	if t.Value != "" {
		value["operator"], value["value"] = "Equal", t.Value
	}
	return edit{kind: addToleration, say: "tolerate the taint " + taintText(t), ops: []Op{{Op: "add", Path: "/spec/tolerations/-", Value: value}}}
}

func taintText(t *v1.Taint) string {
	if t.Value == "" {
		return fmt.Sprintf("%s:%s", t.Key, t.Effect)
	}
	return fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
}

// uncordon has the node take pods again, or the pod go there all the same.
func (s *search) uncordon(row table.Row) [][]edit {
	return [][]edit{
		{s.nodeEdit(row, "uncordon node "+s.table.Name(row), Op{Op: "remove", Path: "/spec/unschedulable"})},
		{toleration(&v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule})},
	}
}

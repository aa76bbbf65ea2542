package fix

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/table"
)

// untolerated are the taints of the node that keep the pod away, with their places.
func (s *search) untolerated(node string) (at []int) {
	n := s.nodes[node]
	if n == nil {
		return nil
	}
	for i := range n.Spec.Taints {
		if !s.pod.Tolerations.Admits(n.Spec.Taints[i:i+1], false) {
			at = append(at, i)
		}
	}
	return at
}

// tolerate has the pod tolerate the taints of the row's node, or the node lose them.
func (s *search) tolerate(row table.Row) [][]edit {
	var tolerations, untaints []edit
	n := s.nodes[s.table.Name(row)]
	for _, i := range s.untolerated(s.table.Name(row)) {
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

package generate

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// priorities gives pods different ranks where pods may be preempted, and
// sometimes forbids them to preempt.
var priorities = feature{pod: func(b *builder, p *v1.Pod) {
	rank := int32(b.pick(-1_000_000, -5, 0, 0, 10, 10, 1000))
	if !b.mix.preemptible {
		rank = 0
	}
	p.Spec.Priority = &rank
	if b.chance(15) {
		never := v1.PreemptNever
		p.Spec.PreemptionPolicy = &never
	}
}}

// budgets labels pods and protects some of them, in all the ways that a
// selector can be empty, absent or overlap with another.
var budgets = feature{pod: func(b *builder, p *v1.Pod) {
	if b.chance(80) {
		p.Labels = map[string]string{"app": b.word("web", "db", "batch")}
		if b.chance(50) {
			p.Labels["tier"] = b.word("front", "back")
		}
	}
}, world: func(b *builder, w *World) {
	for i := range b.pick(0, 1, 2, 3, 5) {
		budget := &policyv1.PodDisruptionBudget{
			TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
			ObjectMeta: metav1.ObjectMeta{Namespace: b.word("default", "team-a"), Name: fmt.Sprintf("budget-%d", i)},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: podSelector(b)},
			Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(b.pick(0, 0, 1, 2))},
		}
		if len(w.Bound) > 0 && b.chance(30) {
			budget.Status.DisruptedPods = map[string]metav1.Time{b.oneOf(w.Bound).Name: metav1.NewTime(epoch)}
		}
		w.Budgets = append(w.Budgets, budget)
	}
}}

func podSelector(b *builder) *metav1.LabelSelector {
	switch b.IntN(8) {
	case 0:
		return nil
	case 1:
		return &metav1.LabelSelector{}
	case 2:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	case 3:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", "db"}}}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": b.word("web", "db", "batch")}}
}

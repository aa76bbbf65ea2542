package decode

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/object"
)

// A budget covers the pods that its selector matches, as for kube-scheduler.
func TestBudget(t *testing.T) {
	api := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b"},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 2, DisruptedPods: map[string]metav1.Time{"gone": {}}},
	}
	pod := func(name string) *object.Pod {
		return &object.Pod{Namespace: "n", Name: name, Labels: map[string]string{"app": "x"}}
	}
	for name, c := range map[string]struct {
		selector *metav1.LabelSelector
		counts   bool
	}{
		"matching": {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}, true},
		"other":    {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "y"}}, false},
		"none":     {nil, false},
		"empty":    {&metav1.LabelSelector{}, false},
		"invalid":  {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Is"}}}, false},
	} {
		api.Spec.Selector = c.selector
		b := Budget(api)
		if b.Namespace != "n" || b.Name != "b" || b.Allowed != 2 {
			t.Errorf("%s: got %+v", name, b)
		}
		if got := b.Counts(pod("here")); got != c.counts {
			t.Errorf("%s: counts %v", name, got)
		}
		if b.Counts(pod("gone")) {
			t.Errorf("%s: counts a pod that is counted already", name)
		}
	}
}

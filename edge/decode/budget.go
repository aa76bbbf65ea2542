package decode

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/object"
)

// Budget decodes a PodDisruptionBudget. One whose selector does not parse
// covers no pod, as for kube-scheduler.
func Budget(b *policyv1.PodDisruptionBudget) *object.Budget {
	budget := &object.Budget{
		Namespace: b.Namespace,
		Name:      b.Name,
		Allowed:   b.Status.DisruptionsAllowed,
	}
	if s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil {
		budget.Selector = s
	}
	if len(b.Status.DisruptedPods) > 0 {
		budget.Disrupted = make(map[string]bool, len(b.Status.DisruptedPods))
		for name := range b.Status.DisruptedPods {
			budget.Disrupted[name] = true
		}
	}
	return budget
}

package workload

import (
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/berth-scheduler/berth/edge/decode"
)

// FillBudget fills in the status of a budget where no controller has. All its pods count as
// expected, and those that are ready as healthy. It reports whether it did.
func FillBudget(b *policyv1.PodDisruptionBudget, pods []*v1.Pod) bool {
	if b.Status.ObservedGeneration != 0 || b.Status.DisruptionsAllowed != 0 || len(b.Status.Conditions) != 0 {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return false
	}
	var expected, healthy int
	for _, p := range pods {
		if decode.Ended(p) || p.Namespace != b.Namespace || !selector.Matches(labels.Set(p.Labels)) {
			continue
		}
		expected++
		if p.Spec.NodeName != "" && Ready(p) {
			healthy++
		}
	}
	desired := expected
	if m := b.Spec.MaxUnavailable; m != nil {
		unavailable, err := intstr.GetScaledValueFromIntOrPercent(m, expected, true)
		if err != nil {
			return false
		}
		desired = expected - unavailable
	} else if m := b.Spec.MinAvailable; m != nil {
		available, err := intstr.GetScaledValueFromIntOrPercent(m, expected, true)
		if err != nil {
			return false
		}
		desired = available
	}
	b.Status.DisruptionsAllowed = int32(max(0, healthy-desired))
	b.Status.CurrentHealthy, b.Status.DesiredHealthy, b.Status.ExpectedPods = int32(healthy), int32(max(0, desired)), int32(expected)
	b.Status.ObservedGeneration = max(1, b.Generation)
	return true
}

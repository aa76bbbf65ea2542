package object

import "k8s.io/apimachinery/pkg/labels"

// Budget is what the scheduler reads of one PodDisruptionBudget. Immutable.
type Budget struct {
	Namespace string
	Name      string
	// Selector is spec.selector, nil if it does not parse.
	Selector labels.Selector
	// Allowed is status.disruptionsAllowed: how many more pods may be evicted.
	Allowed int32
	// Disrupted are the names in status.disruptedPods: pods whose eviction is counted
	// already.
	Disrupted map[string]bool
	// Recorded is the API object in the form in which a record of the scheduler's inputs
	// holds it (edge/recording); "" unless a record is kept.
	Recorded string
}

// Counts reports whether evicting the pod would use up one of the disruptions that the
// PodDisruptionBudget allows: the budget covers the pod, and the pod is not being
// disrupted already.
func (b *Budget) Counts(p *Pod) bool {
	return b.Covers(p) && !b.Disrupted[p.Name]
}

// Covers reports whether the budget selects the pod. A budget with an empty selector, or
// with none, covers no pod, and no budget covers a pod without labels (kube-scheduler's
// preemption; the disruption controller reads an empty selector as all pods).
func (b *Budget) Covers(p *Pod) bool {
	return b.Namespace == p.Namespace &&
		len(p.Labels) > 0 && b.Selector != nil && !b.Selector.Empty() &&
		b.Selector.Matches(labels.Set(p.Labels))
}

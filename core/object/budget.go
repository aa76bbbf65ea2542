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
	// Strict is set if the budget selects as the API says: an empty selector selects all pods,
	// and pods without labels are selected like others.
	Strict bool
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

// Covers reports whether the budget selects the pod. Unless Strict is set, a budget with an empty
// selector covers no pod, and no budget covers a pod without labels, as in kube-scheduler's
// preemption. A budget without a selector covers none.
func (b *Budget) Covers(p *Pod) bool {
	return b.Namespace == p.Namespace && b.Selector != nil &&
		(b.Strict || len(p.Labels) > 0 && !b.Selector.Empty()) &&
		b.Selector.Matches(labels.Set(p.Labels))
}

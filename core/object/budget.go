package object

import "k8s.io/apimachinery/pkg/labels"

// Budget is what the scheduler knows of one PodDisruptionBudget. Immutable.
type Budget struct {
	Namespace string
	Name      string
	// Selector of spec.selector, nil where that does not parse.
	Selector labels.Selector
	// Allowed is status.disruptionsAllowed: how many more pods may go.
	Allowed int32
	// Disrupted are the names of status.disruptedPods: pods that are on their
	// way out and counted already.
	Disrupted map[string]bool
	// Recorded is as a Pod's.
	Recorded string
}

// Counts reports whether the pod's going would be counted against the budget. A
// budget with an empty selector, or with none, covers no pod, and neither is a
// pod without labels covered (v1.36's preemption; the disruption controller
// reads an empty selector as all pods).
func (b *Budget) Counts(p *Pod) bool {
	return b.Covers(p) && !b.Disrupted[p.Name]
}

// Covers is Counts for a pod that is not on its way out already.
func (b *Budget) Covers(p *Pod) bool {
	return b.Namespace == p.Namespace &&
		len(p.Labels) > 0 && b.Selector != nil && !b.Selector.Empty() &&
		b.Selector.Matches(labels.Set(p.Labels))
}

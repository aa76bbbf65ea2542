package whatif

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/workload"
)

// budget is a PodDisruptionBudget and how many of its pods are down: those that
// were ready at the start and do not run now.
type budget struct {
	api        *policyv1.PodDisruptionBudget
	selector   labels.Selector
	ready      map[string]bool // by namespace/name
	down, most int
}

func (b *budget) name() string { return b.api.Namespace + "/" + b.api.Name }

// use returns the budget with so many of its pods down.
func (b *budget) use(down int) BudgetUse {
	return BudgetUse{b.name(), int(b.api.Status.DisruptionsAllowed), down}
}

// covers tells whether the eviction API asks the budget about the pod. Unlike
// for preemption, an empty selector covers all pods of the namespace.
func (b *budget) covers(p *object.Pod) bool {
	return b.api.Namespace == p.Namespace && b.selector.Matches(labels.Set(p.Labels))
}

// countBudgets finds the pods of each budget.
func (s *session) countBudgets() {
	s.budgets = nil
	for _, api := range s.set.Budgets {
		selector, err := metav1.LabelSelectorAsSelector(api.Spec.Selector)
		if err != nil {
			continue // it covers no pod
		}
		b := &budget{api: api, selector: selector, ready: map[string]bool{}}
		for _, p := range s.running {
			if b.covers(p) && workload.Ready(s.pods[p.Key()]) {
				b.ready[p.Key()] = true
			}
		}
		s.budgets = append(s.budgets, b)
	}
}

// countDown counts the pods that are down. Those that were scaled away are not
// missed.
func (s *session) countDown() {
	for _, b := range s.budgets {
		b.down = 0
		for key := range b.ready { // any order: a count
			if now := s.cluster.Pod(key); (now == nil || now.NodeName == "") && s.gone[key] != scaledDown {
				b.down++
			}
		}
		b.most = max(b.most, b.down)
	}
}

// refused returns why the eviction API would not evict the pod now, "" if it would, and the budgets that say so. A pod
// that does not run yet is not asked about. One that is not ready may go while its budget is
// healthy without it, or always, as the budget says.
func (s *session) refused(p *object.Pod) (why string, by []BudgetUse) {
	if api := s.pods[p.Key()]; api.DeletionTimestamp != nil || api.Status.Phase == v1.PodPending {
		return "", nil
	}
	var of []*budget
	for _, b := range s.budgets {
		if b.covers(p) {
			of = append(of, b)
			by = append(by, b.use(b.down))
		}
	}
	if len(of) > 1 {
		return fmt.Sprintf("budgets %s and %s both cover it, which the eviction API does not support", of[0].name(), of[1].name()), by
	}
	if len(of) == 0 || !workload.Ready(s.pods[p.Key()]) && of[0].sparesUnready() || of[0].down < int(of[0].api.Status.DisruptionsAllowed) {
		return "", nil
	}
	return fmt.Sprintf("budget %s lets %d of its pods be down at once, and %d are", of[0].name(), of[0].api.Status.DisruptionsAllowed, of[0].down), by
}

// sparesUnready reports whether a pod that is not ready may go without being counted.
func (b *budget) sparesUnready() bool {
	if policy := b.api.Spec.UnhealthyPodEvictionPolicy; policy != nil && *policy == policyv1.AlwaysAllow {
		return true
	}
	healthy, desired := int(b.api.Status.CurrentHealthy)-b.down, int(b.api.Status.DesiredHealthy)
	return desired > 0 && healthy >= desired
}

// tellBudgets tells the scheduler what the budgets allow now, so that
// preemption minds the pods that are down.
func (s *session) tellBudgets() {
	for _, b := range s.budgets {
		if len(b.ready) == 0 {
			continue
		}
		now := decode.Budget(b.api)
		now.Allowed = max(0, now.Allowed-int32(b.down))
		s.cluster.SetBudget(now)
	}
}

// lost counts a pod that was evicted, if it was ready at the start.
func (s *session) lost(p *object.Pod) {
	for _, b := range s.budgets {
		if b.ready[p.Key()] {
			b.down++
			b.most = max(b.most, b.down)
		}
	}
}

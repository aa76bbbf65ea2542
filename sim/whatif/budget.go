package whatif

import (
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

// budget is a PodDisruptionBudget and how many of its pods are down: those that
// ran at the start and do not now.
type budget struct {
	api        *policyv1.PodDisruptionBudget
	selector   labels.Selector
	pods       []*object.Pod
	down, most int
}

func (b *budget) name() string { return b.api.Namespace + "/" + b.api.Name }

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
		b := &budget{api: api, selector: selector}
		for _, p := range s.running {
			if b.covers(p) {
				b.pods = append(b.pods, p)
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
		for _, p := range b.pods {
			if now := s.cluster.Pod(p.Key()); (now == nil || now.NodeName == "") && s.gone[p.Key()] != scaledDown {
				b.down++
			}
		}
		b.most = max(b.most, b.down)
	}
}

// refused is why the eviction API would not evict the pod now, "" if it would.
func (s *session) refused(p *object.Pod) string {
	var of []*budget
	for _, b := range s.budgets {
		if b.covers(p) {
			of = append(of, b)
		}
	}
	switch {
	case len(of) > 1:
		return fmt.Sprintf("budgets %s and %s both cover it, which the eviction API does not support", of[0].name(), of[1].name())
	case len(of) == 1 && of[0].down >= int(of[0].api.Status.DisruptionsAllowed):
		return fmt.Sprintf("budget %s lets %d of its pods be down at once, and %d are", of[0].name(), of[0].api.Status.DisruptionsAllowed, of[0].down)
	}
	return ""
}

// tellBudgets tells the scheduler what the budgets allow now, so that
// preemption minds the pods that are down.
func (s *session) tellBudgets() {
	for _, b := range s.budgets {
		if len(b.pods) == 0 {
			continue
		}
		now := decode.Budget(b.api)
		now.Allowed = max(0, now.Allowed-int32(b.down))
		s.cluster.SetBudget(now)
	}
}

// lost counts a pod that was evicted.
func (s *session) lost(p *object.Pod) {
	for _, b := range s.budgets {
		if b.covers(p) {
			b.down++
			b.most = max(b.most, b.down)
		}
	}
}

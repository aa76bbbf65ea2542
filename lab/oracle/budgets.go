package oracle

import (
	"slices"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// SetBudget adds the disruption budget to those that kube-scheduler lists, or changes it.
func (s *Scheduler) SetBudget(b *policyv1.PodDisruptionBudget) error {
	return s.factory.Policy().V1().PodDisruptionBudgets().Informer().GetIndexer().Update(b)
}

// sortBudgets makes the factory list disruption budgets by namespace and name. kube-scheduler
// counts a pod that several budgets cover against them in the order in which they are
// listed, which is random otherwise. It has to be called before anybody asks the factory
// for budgets.
func sortBudgets(factory informers.SharedInformerFactory) {
	factory.InformerFor(&policyv1.PodDisruptionBudget{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
		informer := cache.NewSharedIndexInformer(nil, &policyv1.PodDisruptionBudget{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		return sortedInformer{informer}
	})
}

// sortedInformer is an informer whose indexer lists objects by key.
type sortedInformer struct{ cache.SharedIndexInformer }

func (i sortedInformer) GetIndexer() cache.Indexer {
	return sortedIndexer{i.SharedIndexInformer.GetIndexer()}
}

type sortedIndexer struct{ cache.Indexer }

// List returns the objects, sorted by namespace and name.
func (i sortedIndexer) List() []any {
	var objects []any
	for _, key := range slices.Sorted(slices.Values(i.ListKeys())) {
		if o, ok, err := i.GetByKey(key); ok && err == nil {
			objects = append(objects, o)
		}
	}
	return objects
}

package oracle

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// SetSelectorOwner shows the Service or controller, new or changed.
func (s *Scheduler) SetSelectorOwner(o metav1.Object) error { return addSelectorOwner(s.factory, o) }

// DeleteSelectorOwner shows that the Service or controller is gone.
func (s *Scheduler) DeleteSelectorOwner(o metav1.Object) error {
	indexer, err := selectorOwners(s.factory, o)
	if err != nil {
		return err
	}
	return indexer.Delete(o)
}

// addSelectorOwner shows the Service or controller to those who list it.
func addSelectorOwner(factory informers.SharedInformerFactory, o metav1.Object) error {
	indexer, err := selectorOwners(factory, o)
	if err != nil {
		return err
	}
	return indexer.Add(o)
}

// selectorOwners returns the list that holds objects of the kind of o.
func selectorOwners(factory informers.SharedInformerFactory, o metav1.Object) (cache.Indexer, error) {
	core, apps := factory.Core().V1(), factory.Apps().V1()
	switch o.(type) {
	case *v1.Service:
		return core.Services().Informer().GetIndexer(), nil
	case *v1.ReplicationController:
		return core.ReplicationControllers().Informer().GetIndexer(), nil
	case *appsv1.ReplicaSet:
		return apps.ReplicaSets().Informer().GetIndexer(), nil
	case *appsv1.StatefulSet:
		return apps.StatefulSets().Informer().GetIndexer(), nil
	}
	return nil, fmt.Errorf("%s/%s: a %T is no Service or controller", o.GetNamespace(), o.GetName(), o)
}

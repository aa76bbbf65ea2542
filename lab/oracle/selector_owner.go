package oracle

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
)

// SetSelectorOwner shows the Service or controller, new or changed.
func (s *Scheduler) SetSelectorOwner(o metav1.Object) error { return addSelectorOwner(s.factory, o) }

// addSelectorOwner shows the Service or controller to those who list it.
func addSelectorOwner(factory informers.SharedInformerFactory, o metav1.Object) error {
	core, apps := factory.Core().V1(), factory.Apps().V1()
	switch o.(type) {
	case *v1.Service:
		return core.Services().Informer().GetIndexer().Add(o)
	case *v1.ReplicationController:
		return core.ReplicationControllers().Informer().GetIndexer().Add(o)
	case *appsv1.ReplicaSet:
		return apps.ReplicaSets().Informer().GetIndexer().Add(o)
	case *appsv1.StatefulSet:
		return apps.StatefulSets().Informer().GetIndexer().Add(o)
	}
	return fmt.Errorf("%s/%s: a %T is no Service or controller", o.GetNamespace(), o.GetName(), o)
}

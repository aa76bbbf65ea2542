package kube

import (
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

// selectorOwners returns stores that watch Services, ReplicationControllers, ReplicaSets
// and StatefulSets, whose selectors the default constraints of PodTopologySpread use.
// NewWatcher always makes them, whether or not a profile has such constraints. Only the
// selector of each object is kept.
func (w *Watcher) selectorOwners(c *Clients, post func(machine.Event)) []*store {
	var stores []*store
	for _, f := range []struct {
		kind     object.SelectorOwnerKind
		client   rest.Interface
		resource string
		empty    any
	}{
		{object.Service, c.Watch, "services", &v1.Service{}},
		{object.ReplicationController, c.Watch, "replicationcontrollers", &v1.ReplicationController{}},
		{object.ReplicaSet, c.Apps, "replicasets", &appsv1.ReplicaSet{}},
		{object.StatefulSet, c.Apps, "statefulsets", &appsv1.StatefulSet{}},
	} {
		m := newStore(f.resource, post, w.guarded(entries(selectorOwnerSet), nil), func(o owner) machine.Event {
			return machine.SelectorOwnerGone{Kind: f.kind, Namespace: o.Namespace, Name: o.Name}
		})
		m.reflect(f.client, f.empty, "", w.logger)
		stores = append(stores, m)
	}
	return stores
}

// selectorOwnerSet returns the SelectorOwnerSet event for a Service or a controller;
// nil for another type.
func selectorOwnerSet(o metav1.ObjectMetaAccessor) machine.Event {
	if f := decode.SelectorOwner(o); f != nil {
		return machine.SelectorOwnerSet{Owner: f}
	}
	return nil
}

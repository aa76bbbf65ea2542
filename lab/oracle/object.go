package oracle

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/sim/generate"
)

// store is the store behind the lister of the object's kind, and the events on
// it.
func (s *Scheduler) store(o metav1.Object) (cache.Indexer, fwk.EventResource, error) {
	core, storage := s.factory.Core().V1(), s.factory.Storage().V1()
	switch o.(type) {
	case *v1.PersistentVolumeClaim:
		return core.PersistentVolumeClaims().Informer().GetIndexer(), fwk.PersistentVolumeClaim, nil
	case *v1.PersistentVolume:
		return core.PersistentVolumes().Informer().GetIndexer(), fwk.PersistentVolume, nil
	case *storagev1.StorageClass:
		return storage.StorageClasses().Informer().GetIndexer(), fwk.StorageClass, nil
	case *storagev1.CSINode:
		return storage.CSINodes().Informer().GetIndexer(), fwk.CSINode, nil
	case *storagev1.CSIDriver:
		return storage.CSIDrivers().Informer().GetIndexer(), fwk.CSIDriver, nil
	case *storagev1.CSIStorageCapacity:
		return storage.CSIStorageCapacities().Informer().GetIndexer(), fwk.CSIStorageCapacity, nil
	case *storagev1.VolumeAttachment:
		return storage.VolumeAttachments().Informer().GetIndexer(), fwk.VolumeAttachment, nil
	}
	return nil, "", fmt.Errorf("%s/%s: no plugin reads a %T", o.GetNamespace(), o.GetName(), o)
}

// setObject shows the object to those who list it.
func (s *Scheduler) setObject(o metav1.Object) error {
	if done, err := s.changeDevices(generate.Update, o); done {
		return err
	}
	store, _, err := s.store(o)
	if err != nil {
		return err
	}
	return store.Update(o)
}

// changeObject changes an object and tells the queue.
func (s *Scheduler) changeObject(c generate.Change) error {
	if done, err := s.changeDevices(c.Verb, c.Other); done {
		return err
	}
	store, resource, err := s.store(c.Other)
	if err != nil {
		return err
	}
	old, known, err := store.Get(c.Other)
	if err != nil {
		return err
	}
	if c.Verb == generate.Delete {
		if !known {
			return nil
		}
		err = store.Delete(c.Other)
		s.move(fwk.ClusterEvent{Resource: resource, ActionType: fwk.Delete}, old, nil)
		return err
	}
	action := fwk.Add
	if known {
		action = fwk.Update
	} else {
		old = nil
	}
	err = store.Update(c.Other)
	s.move(fwk.ClusterEvent{Resource: resource, ActionType: action}, old, c.Other)
	return err
}

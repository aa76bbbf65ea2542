package oracle

import (
	"fmt"
	"path"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim/generate"
)

// store is the store behind the lister of the object's kind, and the events on
// it.
func (s *Scheduler) store(o metav1.Object) (cache.Indexer, fwk.EventResource, error) {
	k := decode.Of(o)
	if k == nil || !k.HasObject() {
		return nil, "", fmt.Errorf("%s/%s: no plugin reads a %T", o.GetNamespace(), o.GetName(), o)
	}
	informer, err := s.factory.ForResource(k.WithResource(k.Resource))
	if err != nil {
		return nil, "", err
	}
	return informer.Informer().GetIndexer(), fwk.EventResource(path.Join(k.Group, k.Name)), nil
}

// setObject shows the object to those who list it.
func (s *Scheduler) setObject(o metav1.Object) error {
	if done, err := s.changeFed(generate.Update, o); done {
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
	if done, err := s.changeFed(c.Verb, c.Other); done {
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

package oracle

import (
	"context"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/berth-scheduler/berth/edge/decode"
)

// Fed is an informer that is told by hand, and tells its handlers at once. It needs
// no API server.
type Fed struct {
	cache.SharedIndexInformer
	handlers []cache.ResourceEventHandler
}

func (f *Fed) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	f.handlers = append(f.handlers, h)
	return f.SharedIndexInformer.AddEventHandler(cache.ResourceEventHandlerFuncs{})
}

func (f *Fed) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(h)
}

func (f *Fed) AddEventHandlerWithOptions(h cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(h)
}

func (f *Fed) HasSynced() bool { return true }

// Run and RunWithContext do nothing: nobody is asked for objects.
func (f *Fed) Run(<-chan struct{}) {}

func (f *Fed) RunWithContext(context.Context) {}

// Feed registers a Fed informer for the type with the factory. Call it before anybody asks
// the factory.
func Feed(factory informers.SharedInformerFactory, object runtime.Object) *Fed {
	f := &Fed{SharedIndexInformer: cache.NewSharedIndexInformer(nil, object, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
	return factory.InformerFor(object, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return f }).(*Fed)
}

// Set shows the object.
func (f *Fed) Set(o metav1.Object) error {
	old, known, err := f.GetIndexer().Get(o)
	if err == nil {
		err = f.GetIndexer().Update(o)
	}
	for _, h := range f.handlers {
		if known {
			h.OnUpdate(old, o)
		} else {
			h.OnAdd(o, false)
		}
	}
	return err
}

// Remove shows that the object is gone.
func (f *Fed) Remove(o metav1.Object) error {
	old, known, err := f.GetIndexer().Get(o)
	if err != nil || !known {
		return err
	}
	err = f.GetIndexer().Delete(old)
	for _, h := range f.handlers {
		h.OnDelete(old)
	}
	return err
}

// feed registers fed informers with the factory, for PodGroups and for all kinds about
// devices: kube-scheduler knows of them what the world tells it.
func feed(factory informers.SharedInformerFactory) {
	for i := range decode.Kinds {
		if k := &decode.Kinds[i]; fed(k) {
			Feed(factory, k.New().(runtime.Object))
		}
	}
}

// fed reports whether informers of the kind are told by hand.
func fed(k *decode.Kind) bool {
	return k != nil && (k.Group == resourcev1.GroupName || k.Group == schedulingv1beta1.GroupName)
}

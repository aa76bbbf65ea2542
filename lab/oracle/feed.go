package oracle

import (
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// fed is an informer that is told by hand, and tells its handlers at once. What
// kube-scheduler knows about devices it has by being told.
type fed struct {
	cache.SharedIndexInformer
	handlers []cache.ResourceEventHandler
}

func (f *fed) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	f.handlers = append(f.handlers, h)
	return f.SharedIndexInformer.AddEventHandler(cache.ResourceEventHandlerFuncs{})
}

func (f *fed) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(h)
}

func (f *fed) AddEventHandlerWithOptions(h cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(h)
}

func (f *fed) HasSynced() bool { return true }

// set shows the object.
func (f *fed) set(o metav1.Object) error {
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

// remove shows that the object is gone.
func (f *fed) remove(o metav1.Object) error {
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

// feed has the factory hand out fed informers for all that is about devices.
// It has to be called before anybody asks the factory.
func feed(factory informers.SharedInformerFactory) {
	for _, object := range []runtime.Object{&resourcev1.ResourceClaim{}, &resourcev1.ResourceSlice{}, &resourcev1.DeviceClass{}} {
		factory.InformerFor(object, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
			return &fed{SharedIndexInformer: cache.NewSharedIndexInformer(nil, object, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
		})
	}
}

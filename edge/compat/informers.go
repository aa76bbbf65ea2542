package compat

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/decode"
)

// factory is a SharedInformerFactory that records the event handlers that are added to its
// informers, so that scheduling waits until each has seen its informer's first list.
type factory struct {
	informers.SharedInformerFactory
	mu       sync.Mutex
	handlers []cache.ResourceEventHandlerRegistration
}

// newFactory wraps inner. The informer of pods selects those that have not ended.
func newFactory(inner informers.SharedInformerFactory) *factory {
	f := &factory{SharedInformerFactory: inner}
	f.InformerFor(&v1.Pod{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewFilteredPodInformer(client, all, resync, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
			func(o *metav1.ListOptions) { o.FieldSelector = decode.Unfinished })
	})
	return f
}

// InformerFor returns the informer of the object's type, made by make at the first call.
// Scheduling waits until its handlers have seen the first list.
func (f *factory) InformerFor(obj runtime.Object, make internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return f.SharedInformerFactory.InformerFor(obj, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return &informer{make(client, resync), f}
	})
}

// recordHandler records a handler's registration, so that scheduling does not begin before
// the handler has seen the first list. It returns its arguments.
func (f *factory) recordHandler(r cache.ResourceEventHandlerRegistration, err error) (cache.ResourceEventHandlerRegistration, error) {
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.handlers = append(f.handlers, r)
	}
	return r, err
}

// waitForHandlers waits until each recorded handler has seen the objects of its informer's
// first list. It returns false if the context ends first.
func (f *factory) waitForHandlers(ctx context.Context) bool {
	f.mu.Lock()
	handlers := slices.Clone(f.handlers)
	f.mu.Unlock()
	for _, h := range handlers {
		if !cache.WaitForCacheSync(ctx.Done(), h.HasSynced) {
			return false
		}
	}
	return true
}

// informer is a SharedIndexInformer that records its handlers in the factory:
// waitForHandlers waits until each has seen the first list.
type informer struct {
	cache.SharedIndexInformer
	factory *factory
}

// AddEventHandler adds a handler. Scheduling waits until the handler has seen the
// informer's first list.
func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.factory.recordHandler(i.SharedIndexInformer.AddEventHandler(h))
}

// AddEventHandlerWithResyncPeriod adds a handler. Scheduling waits until the handler has
// seen the informer's first list.
func (i *informer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, d time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.factory.recordHandler(i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(h, d))
}

// AddEventHandlerWithOptions adds a handler. Scheduling waits until the handler has seen
// the informer's first list.
func (i *informer) AddEventHandlerWithOptions(h cache.ResourceEventHandler, o cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.factory.recordHandler(i.SharedIndexInformer.AddEventHandlerWithOptions(h, o))
}

// builtin returns the API resource for a name without group and version under which plugins
// register for its events, such as fwk.PersistentVolume. It returns false for other names.
func builtin(r fwk.EventResource) (schema.GroupVersionResource, bool) {
	kind, ok := kinds[r]
	return kind.GroupVersion().WithResource(kind.Resource()), ok
}

// Pods returns the informer of unfinished pods that plugins read. Berth takes its pods from it too,
// so that it never decides on a newer state than plugins see.
func (h *Hosts) Pods() cache.SharedIndexInformer { return h.factory.Core().V1().Pods().Informer() }

// Nodes returns the informer of nodes that plugins read. Berth takes its nodes from it too.
func (h *Hosts) Nodes() cache.SharedIndexInformer { return h.factory.Core().V1().Nodes().Informer() }

// Start starts the informers that plugins requested, those of the resources whose
// events they registered for, and the goroutines of PostBind, until the context ends.
// Call it after all plugins were made.
func (h *Hosts) Start(ctx context.Context) error {
	h.runPostBinds(ctx)
	context.AfterFunc(ctx, h.workers.end)
	if h.broadcaster != nil {
		context.AfterFunc(ctx, h.broadcaster.Shutdown)
		if err := h.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
			return fmt.Errorf("recording events of plugins: %w", err)
		}
	}
	h.slicesOnce.Do(func() {}) // whoever asks from now on sees slices without rules
	if h.slices != nil {
		context.AfterFunc(ctx, h.slices.Stop)
	}
	custom := dynamicinformer.NewDynamicSharedInformerFactory(h.options.Dynamic, 0)
	for _, name := range h.resources() {
		var i interface {
			AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
		}
		if gvr, ok := builtin(fwk.EventResource(name)); ok {
			generic, err := h.factory.ForResource(gvr)
			if err != nil {
				return fmt.Errorf("events of %s: %w", name, err)
			}
			if i = generic.Informer(); h.slices != nil && fwk.EventResource(name) == fwk.ResourceSlice {
				i = h.slices
			}
		} else {
			gvr, _ := schema.ParseResourceArg(name)
			if gvr == nil {
				return fmt.Errorf("events of %q: the resource is not of the form resource.version.group", name)
			}
			i = custom.ForResource(*gvr).Informer()
		}
		if _, err := i.AddEventHandler(h.machineHandler(name)); err != nil {
			return fmt.Errorf("events of %s: %w", name, err)
		}
	}
	h.factory.StartWithContext(ctx)
	custom.Start(ctx.Done())
	return nil
}

// machineHandler returns an event handler that posts each change of the resource's objects to the
// machine, as HostedObjectChanged. It waits while too many events are queued.
func (h *Hosts) machineHandler(resource string) cache.ResourceEventHandler {
	post := func(a framework.ActionType, old, now any) {
		h.loop.Post(machine.HostedObjectChanged{Resource: resource, ActionType: a, Old: old, New: now})
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { post(framework.Add, nil, obj) },
		UpdateFunc: func(old, now any) { post(framework.UpdateOther, old, now) },
		DeleteFunc: func(obj any) {
			if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = lost.Obj
			}
			post(framework.Delete, obj, nil)
		},
	}
}

// WaitForSync waits until the informers of plugins, and their handlers, have got all objects. It
// does not wait for custom resources. It returns false if the context ends first.
func (h *Hosts) WaitForSync(ctx context.Context) bool {
	for _, synced := range h.factory.WaitForCacheSync(ctx.Done()) { // any order: all
		if !synced {
			return false
		}
	}
	return h.factory.waitForHandlers(ctx)
}

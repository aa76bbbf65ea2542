package compat

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// ErrOffline is what a plugin gets of a client where there is no API server.
var ErrOffline = errors.New("there is no API server in a simulation")

// NewOffline returns hosts of plugins for a cluster that is simulated. Informers of pods
// and nodes know what Feed says; those of other kinds stay empty. Each request to the API
// server fails. PostFilter is always waited for, so that what plugins do goes by the order
// of the calls and not by their time.
func NewOffline(o Options) (*Hosts, error) {
	api := &rest.Config{Host: "http://offline.invalid", Transport: offline{}}
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return nil, err
	}
	h := New(o)
	h.options.Config, h.options.Client, h.options.PostFilterWait = api, client, h.options.Timeout
	h.fed = newFedFactory(client)
	h.factory = &factory{SharedInformerFactory: h.fed}
	return h, nil
}

// offline answers no request.
type offline struct{}

func (offline) RoundTrip(*http.Request) (*http.Response, error) { return nil, ErrOffline }

// Close ends the goroutines that have nothing to do.
func (h *Hosts) Close() { h.workers.end() }

// Feed updates informers and their handlers for a pod or a node that changed from old to
// now; nil for none. Only the loop may call it, before it sends the event to the machine.
func (h *Hosts) Feed(old, now runtime.Object) error {
	i, some := h.fed.pods, now
	if now == nil {
		some = old
	}
	if _, node := some.(*v1.Node); node {
		i = h.fed.nodes
	}
	handlers, err := i.set(old, now)
	if err != nil || len(handlers) == 0 {
		return err
	}
	return h.callOnce("", "event handlers", "", func() {
		for _, handler := range handlers {
			tell(handler, old, now)
		}
	})
}

func tell(h cache.ResourceEventHandler, old, now runtime.Object) {
	switch {
	case old == nil:
		h.OnAdd(now, false)
	case now == nil:
		h.OnDelete(old)
	default:
		h.OnUpdate(old, now)
	}
}

// fedFactory is a SharedInformerFactory that starts nothing.
type fedFactory struct {
	informers.SharedInformerFactory
	pods, nodes *fedInformer
}

func newFedFactory(client kubernetes.Interface) *fedFactory {
	inner := informers.NewSharedInformerFactory(client, 0)
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	f := &fedFactory{SharedInformerFactory: inner,
		pods:  &fedInformer{SharedIndexInformer: coreinformers.NewPodInformer(client, all, 0, indexers)},
		nodes: &fedInformer{SharedIndexInformer: coreinformers.NewNodeInformer(client, 0, indexers)}}
	for example, i := range map[runtime.Object]*fedInformer{&v1.Pod{}: f.pods, &v1.Node{}: f.nodes} { // any order: both
		inner.InformerFor(example, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return i })
	}
	return f
}

// Start starts nothing.
func (f *fedFactory) Start(<-chan struct{}) {}

// StartWithContext starts nothing.
func (f *fedFactory) StartWithContext(context.Context) {}

// fedInformer is an informer that is filled by Feed. Plugins may use it from any
// goroutine.
type fedInformer struct {
	cache.SharedIndexInformer
	mu       sync.Mutex
	handlers []cache.ResourceEventHandler
}

// set records the object and returns the handlers to call.
func (i *fedInformer) set(old, now runtime.Object) ([]cache.ResourceEventHandler, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if now == nil {
		return i.handlers, i.GetIndexer().Delete(old)
	}
	return i.handlers, i.GetIndexer().Add(now)
}

// HasSynced is true.
func (i *fedInformer) HasSynced() bool { return true }

// HasSyncedChecker is done.
func (i *fedInformer) HasSyncedChecker() cache.DoneChecker { return synced{} }

// AddEventHandler adds the handler and calls it for all objects.
func (i *fedInformer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	i.handlers = append(i.handlers, h)
	known := i.GetIndexer().List()
	i.mu.Unlock()
	for _, o := range known {
		h.OnAdd(o, true)
	}
	return synced{}, nil
}

// AddEventHandlerWithResyncPeriod adds the handler and calls it for all objects. There is
// no resync.
func (i *fedInformer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// AddEventHandlerWithOptions is AddEventHandler.
func (i *fedInformer) AddEventHandlerWithOptions(h cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// synced is a registration whose handler has got all objects.
type synced struct{}

func (synced) HasSynced() bool                     { return true }
func (synced) HasSyncedChecker() cache.DoneChecker { return synced{} }
func (synced) Name() string                        { return "fed" }

// Done is closed.
func (synced) Done() <-chan struct{} { return closed }

var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

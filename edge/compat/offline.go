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

// ErrOffline is the error of all API requests of plugins in a simulation.
var ErrOffline = errors.New("there is no API server in a simulation")

// NewOffline returns Hosts for a simulated cluster. Informers of pods and nodes have
// what Feed reports; those of other kinds stay empty. API requests fail. The loop
// always waits for PostFilter, so that results depend on the order of calls only, not
// on their duration.
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

// offline is an HTTP transport that fails each request.
type offline struct{}

// RoundTrip returns ErrOffline.
func (offline) RoundTrip(*http.Request) (*http.Response, error) { return nil, ErrOffline }

// Close ends the idle workers, and makes busy ones end when their calls return. Hosts that were
// started close when their context ends.
func (h *Hosts) Close() { h.workers.end() }

// Feed updates the informer of pods or nodes for one object that changed from old to now, and
// waits for the informer's handlers. A nil old means that the object is new, a nil now that it
// was deleted. It returns an error if a handler panics or takes too long. Only Hosts of
// NewOffline have it. The loop calls it before it sends the event to the machine.
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

// tell calls the handler's OnAdd, OnDelete or OnUpdate; a nil object does not exist.
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

// fedFactory is the SharedInformerFactory of a simulation. It starts nothing.
type fedFactory struct {
	informers.SharedInformerFactory
	pods, nodes *fedInformer
}

// newFedFactory returns a factory whose informers of pods and nodes are fedInformers.
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

// Start does nothing.
func (f *fedFactory) Start(<-chan struct{}) {}

// StartWithContext does nothing.
func (f *fedFactory) StartWithContext(context.Context) {}

// fedInformer is an informer that is filled by Feed, not by a watch. Plugins may use it
// from any goroutine.
type fedInformer struct {
	cache.SharedIndexInformer
	mu       sync.Mutex
	handlers []cache.ResourceEventHandler
}

// set stores now, or deletes old if now is nil. It returns the handlers to call.
func (i *fedInformer) set(old, now runtime.Object) ([]cache.ResourceEventHandler, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if now == nil {
		return i.handlers, i.GetIndexer().Delete(old)
	}
	return i.handlers, i.GetIndexer().Add(now)
}

// HasSynced returns true.
func (i *fedInformer) HasSynced() bool { return true }

// HasSyncedChecker returns a checker that is done.
func (i *fedInformer) HasSyncedChecker() cache.DoneChecker { return synced{} }

// AddEventHandler adds the handler and calls its OnAdd for all objects, before it returns.
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

// AddEventHandlerWithResyncPeriod adds the handler; there is no resync.
func (i *fedInformer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// AddEventHandlerWithOptions adds the handler; options are ignored.
func (i *fedInformer) AddEventHandlerWithOptions(h cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// synced is the registration of a handler that has seen all objects.
type synced struct{}

// HasSynced returns true.
func (synced) HasSynced() bool { return true }

// HasSyncedChecker returns a checker that is done.
func (synced) HasSyncedChecker() cache.DoneChecker { return synced{} }

// Name returns a name for logs.
func (synced) Name() string { return "fed" }

// Done returns a closed channel.
func (synced) Done() <-chan struct{} { return closed }

// closed is a closed channel.
var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

package kube

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

// Watcher lists and watches the objects that decisions depend on, and posts them to the
// machine as events. It keeps no objects, only their names, UIDs and versions.
type Watcher struct {
	client rest.Interface
	logger klog.Logger
	stores []*store
	// version is read whenever the watch of the nodes begins.
	version *serverVersion
	bad     atomic.Uint64 // objects that could not be decoded
	audit   auditor
	// failing and silent are how long to wait for a kind that only some plugins read: if
	// its lists fail, and if no answer comes.
	failing, silent time.Duration
	// extenders, if set, decide which events of pods and nodes have the API objects.
	extenders Extenders
	// record, when set, is called with each event and the object it was decoded from.
	record func(machine.Event, metav1.Object)
	// fields removes the fields of a pod that are not to be read.
	fields podFields
	// hosted is set if plugins written against kube-scheduler's framework run: events of
	// pods and nodes then have the API objects.
	hosted bool
}

// NewWatcher returns a watcher that posts events by post, which may block: the watches then
// stop reading. kinds are the kinds to watch of those that only some plugins read. Run starts
// the watcher.
func NewWatcher(c *Clients, kinds []object.Kind, post func(machine.Event), logger klog.Logger) *Watcher {
	s := &Watcher{client: c.Watch, audit: auditor{read: c.metadata}, logger: logger, failing: failingTimeout, silent: silentTimeout, version: newServerVersion(c.Watch, logger)}
	nodes := newStore("nodes", post, s.guarded(entries(s.nodeSet), insteadOfNode), func(o owner) machine.Event {
		return machine.NodeGone{Name: o.Name}
	})
	nodes.protobuf, nodes.watching = c.protobuf, s.version.wake
	nodes.reflect(c.Watch, &v1.Node{}, "", logger)
	budgets := newStore("poddisruptionbudgets", post, s.guarded(entries(budgetSet), nil), func(o owner) machine.Event {
		return machine.BudgetGone{Namespace: o.Namespace, Name: o.Name}
	})
	budgets.reflect(c.Policy, &policyv1.PodDisruptionBudget{}, "", logger)
	namespaces := newStore("namespaces", post, s.guarded(entries(namespaceSet), nil), func(o owner) machine.Event {
		return machine.NamespaceGone{Name: o.Name}
	})
	namespaces.reflect(c.Watch, &v1.Namespace{}, "", logger)
	pods := newStore("pods", post, s.guarded(entries(s.podSet), s.insteadOfPod), func(o owner) machine.Event {
		return machine.PodGone{UID: o.uid, Namespace: o.Namespace, Name: o.Name}
	})
	pods.protobuf = c.protobuf
	pods.reflect(c.Watch, &v1.Pod{}, decode.Unfinished, logger)
	s.stores = append(s.selectorOwners(c, post), nodes, namespaces, budgets, pods)
	for _, kind := range kinds {
		s.stores = append(s.stores, s.objects(c, kind, post))
	}
	return s
}

// Run watches all kinds until the context ends. It retries what fails, less and less often.
func (w *Watcher) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { w.version.run(ctx) })
	for _, m := range w.stores {
		all.Go(func() { m.run(ctx) })
	}
	all.Wait()
}

// Probe waits until the API server answers and allows nodes to be listed. It logs each
// failure and tries again, with growing delays. It returns the last failure if the
// context ends first.
func (w *Watcher) Probe(ctx context.Context) error {
	last := errNoAnswer
	for delay := time.Second; ; delay = min(2*delay, 30*time.Second) {
		err := w.client.Get().Resource("nodes").Param("limit", "1").MaxRetries(0).Do(ctx).Error()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return last
		}
		last = err
		w.logger.Error(err, "Failed to read from the API server, retrying", "delay", delay)
		if !sleep(ctx, delay) {
			return last
		}
	}
}

// BadObjects returns how many objects could not be decoded so far.
func (w *Watcher) BadObjects() uint64 { return w.bad.Load() }

// entry is an object on its way from the API to the machine: its identity, by which
// client-go knows it, and its event. A nil event stands for an object that cannot be
// decoded and needs no event. The first list is held as entries, so an entry is small.
type entry struct {
	owner
	set machine.Event
}

// GetObjectMeta returns what client-go asks for the object's name and version.
func (e *entry) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name, UID: e.uid, ResourceVersion: e.version}
}

// entries returns a function that converts objects of type T to entries. It returns nil
// for an object of another type, or if event returns nil.
func entries[T metav1.ObjectMetaAccessor](event func(T) machine.Event) func(any) *entry {
	return func(obj any) *entry {
		o, ok := obj.(T)
		if !ok {
			return nil
		}
		e := &entry{owner: named(o.GetObjectMeta())}
		if e.set = event(o); e.set == nil {
			return nil
		}
		return e
	}
}

// podSet returns the PodSet event for the pod. It keeps the API object if hosted plugins or
// an extender need it.
func (w *Watcher) podSet(p *v1.Pod) machine.Event {
	if w.hosted { // decoded from a copy, as a plugin may change what it is lent
		pod := decode.Pod(w.fields.of(p.DeepCopy()))
		pod.API = p
		return machine.PodSet{Pod: pod}
	}
	return machine.PodSet{Pod: w.shown(decode.Pod(w.fields.of(p)), p)}
}

// shown returns pod, which was decoded from p. It sets pod.API to p if an extender that gets
// whole pods is interested in this one.
func (w *Watcher) shown(pod *object.Pod, p *v1.Pod) *object.Pod {
	if w.extenders != nil && w.extenders.Pod(p) {
		pod.API = p
	}
	return pod
}

// nodeSet returns the NodeSet event for the node, with its API object if hosted plugins or
// an extender need it.
func (w *Watcher) nodeSet(n *v1.Node) machine.Event {
	if w.hosted {
		node := decode.Node(n.DeepCopy())
		node.API = n
		return machine.NodeSet{Node: node}
	}
	node := decode.Node(n)
	if w.extenders != nil && w.extenders.Nodes() {
		node.API = n
	}
	return machine.NodeSet{Node: node}
}

// namespaceSet returns the event for a namespace.
func namespaceSet(n *v1.Namespace) machine.Event {
	return machine.NamespaceSet{Namespace: decode.Namespace(n)}
}

// budgetSet returns the event for a PodDisruptionBudget.
func budgetSet(b *policyv1.PodDisruptionBudget) machine.Event {
	return machine.BudgetSet{Budget: decode.Budget(b)}
}

// guarded wraps decode so that an object that makes it panic is counted and logged, and
// stops no other. The entry then has the event that instead returns; if instead is nil or
// returns nil, nothing is posted and the machine keeps what it knew of the object. An object
// that is an entry already is returned as it is. The recording (Record) gets what was decoded.
func (w *Watcher) guarded(decode func(any) *entry, instead func(obj any, why error) machine.Event) func(any) *entry {
	return func(obj any) (e *entry) {
		if e, ok := obj.(*entry); ok {
			return e
		}
		why := caught(func() { e = decode(obj) })
		if why == nil {
			if o, ok := obj.(metav1.Object); ok && w.record != nil && e != nil {
				if p, ok := o.(*v1.Pod); ok {
					o = w.fields.of(p)
				}
				w.record(e.set, o)
			}
			return e
		}
		w.bad.Add(1)
		e = &entry{owner: named(obj.(metav1.ObjectMetaAccessor).GetObjectMeta())}
		w.logger.Error(why, "Failed to decode object", "type", fmt.Sprintf("%T", obj), "object", klog.KRef(e.Namespace, e.Name))
		if instead != nil {
			e.set = instead(obj, why)
		}
		return e
	}
}

// Record sets a function that is called with each event and the API object it was decoded
// from, so that a recording can keep it. Call it before Run.
func (w *Watcher) Record(attach func(machine.Event, metav1.Object)) { w.record = attach }

// PodFields sets a function that returns a pod without the fields that are not to be read:
// those that the feature gates disable. Call it before Run.
func (w *Watcher) PodFields(fields func(*v1.Pod) *v1.Pod) { w.fields = fields }

// podFields returns a pod without the fields that are not to be read; nil: all are.
type podFields func(*v1.Pod) *v1.Pod

// of returns the pod without the fields that are not to be read. It does not change p.
func (f podFields) of(p *v1.Pod) *v1.Pod {
	if f == nil {
		return p
	}
	return f(p)
}

// caught runs f and returns its panic as an error; nil if there was none.
func caught(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	f()
	return nil
}

// insteadOfNode returns the event for a node that cannot be decoded: it is removed, so that
// it gets no pods. The pods on it stay.
func insteadOfNode(obj any, _ error) machine.Event {
	return machine.NodeGone{Name: obj.(*v1.Node).Name}
}

// insteadOfPod returns the event for a pod that cannot be decoded. If it is bound, its
// resources are still counted on its node; if it is pending, it is not scheduled. The event
// is nil if not even the resources can be decoded.
func (w *Watcher) insteadOfPod(obj any, why error) (e machine.Event) {
	p := obj.(*v1.Pod)
	if p.Spec.NodeName == "" {
		return machine.PodDecodeFailed{UID: p.UID, Namespace: p.Namespace, Name: p.Name, SchedulerName: p.Spec.SchedulerName, Why: why}
	}
	bare := roomOf(w.fields.of(p))
	if caught(func() { e = machine.PodSet{Pod: w.shown(decode.Pod(bare), p)} }) != nil {
		return nil
	}
	if w.record != nil {
		w.record(e, bare)
	}
	return e
}

// roomOf returns a copy of the pod with little more than what its requests need: containers,
// overhead, node, priority, phase and metadata.
func roomOf(p *v1.Pod) *v1.Pod {
	return &v1.Pod{ObjectMeta: p.ObjectMeta, Status: v1.PodStatus{Phase: p.Status.Phase}, Spec: v1.PodSpec{
		NodeName: p.Spec.NodeName, SchedulerName: p.Spec.SchedulerName, Priority: p.Spec.Priority,
		InitContainers: p.Spec.InitContainers, Containers: p.Spec.Containers, Overhead: p.Spec.Overhead, Resources: p.Spec.Resources,
	}}
}

// owner is the identity of an API object: its name, UID and resource version. Watches and
// the API server are compared by these. An object of the same name with another UID is
// another object.
type owner struct {
	types.NamespacedName
	uid     types.UID
	version string
}

// named returns the identity of an API object.
func named(o metav1.Object) owner {
	return owner{types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}, o.GetUID(), o.GetResourceVersion()}
}

// ownerOf returns the identity of an API object or an entry; false if obj is neither.
func ownerOf(obj any) (owner, bool) {
	switch o := obj.(type) {
	case *entry:
		return o.owner, true
	case metav1.Object:
		return named(o), true
	}
	return owner{}, false
}

// store turns what a reflector sees of one kind into events. It implements cache.Store for
// the reflector, which calls it from one goroutine. It records an object once it was posted.
type store struct {
	name      string                    // of the resource, such as "pods"
	post      func(machine.Event)       // to the loop; may block
	entry     func(obj any) *entry      // decodes an object; nil for an unexpected type
	gone      func(owner) machine.Event // returns the event of a deletion
	reflector *cache.Reflector
	run       func(context.Context)          // runs the reflector or a foreign informer's handler
	seen      map[types.NamespacedName]owner // the objects as last posted; not those that are gone
	protobuf  bool                           // listedAtFirst reads the first list, in protobuf
	tried     bool                           // listedAtFirst has begun to read that list
	streamed  string                         // the version of the list it read, until Replace
	stall     time.Duration                  // how long the list may bring nothing before it fails
	core      coreAudit                      // for pods and nodes, if AuditCore was called
	synced    chan struct{}                  // closed when a whole list has been posted

	api      schema.GroupVersion
	selector string // field selector of lists and watches

	kind   *object.Kind // set if only some plugins read the kind; nil: no pod is scheduled without it
	logger klog.Logger
	failed atomic.Pointer[error] // why the last list failed; nil: it did not
	// watching is called when a watch begins; nil: nothing is.
	watching func()

	mu       sync.Mutex // guards unlisted
	unlisted error      // why the kind is unlisted; nil: it is not
	history
	progress
}

// newStore returns an empty store for a resource. Call reflect, reflectBy or inform before run.
func newStore(name string, post func(machine.Event), entry func(any) *entry, gone func(owner) machine.Event) *store {
	return &store{name: name, post: post, entry: entry, gone: gone,
		seen: map[types.NamespacedName]owner{}, synced: make(chan struct{}), stall: silentTimeout}
}

// reflect sets a reflector of the resource in all namespaces, which fills the store once s.run
// is called. kind is an empty object of its type. selector is a field selector; "" selects all.
func (s *store) reflect(client rest.Interface, kind any, selector string, logger klog.Logger) {
	s.selector = selector
	lw := cache.NewFilteredListWatchFromClient(client, s.name, metav1.NamespaceAll, func(o *metav1.ListOptions) {
		o.FieldSelector = selector
	})
	if o, ok := kind.(protobufObject); ok && s.protobuf {
		lw = s.listedAtFirst(client, o, lw)
	}
	s.reflectBy(lw, client, kind, logger)
}

// reflectBy sets the store's reflector, which fills the store by lw once s.run is called.
// client only names the API version. kind is an empty object of the store's type. It changes
// lw.
func (s *store) reflectBy(lw *cache.ListWatch, client rest.Interface, kind any, logger klog.Logger) {
	s.api, s.logger, s.history.logger = client.APIVersion(), logger, logger
	s.list = lw.ListWithContextFunc
	// A watch that breaks off is resumed sooner than client-go would: pods wait.
	backoff := &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 9, Cap: 30 * time.Second}
	s.reflector = cache.NewReflectorWithOptions(s.recordFailures(s.bookmarkSoon(s.checked(lw))), kind, s, cache.ReflectorOptions{Name: s.name, Logger: &logger, Backoff: backoff})
	s.run = s.reflector.RunWithContext
}

// Transformer returns the function by which the reflector turns objects into entries while
// it collects them, so that the first list is never held as a whole.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if e := s.entry(obj); e != nil {
			return e, nil
		}
		return obj, nil // a tombstone: not of interest here
	}
}

// Add posts a new object. An object that is known already is posted as Update does.
func (s *store) Add(obj any) error { return s.Update(obj) }

// Update posts the event of an object that was added or changed. If the object cannot be decoded,
// it posts the substitute event of guarded, or nothing if there is none. It posts nothing if the
// object was posted in this very version. If an object with another UID had the name before, it
// posts the deletion of that object first. The error is that obj is not of the store's type.
func (s *store) Update(obj any) error {
	e := s.entry(obj)
	if e == nil {
		return fmt.Errorf("%s: unexpected %T", s.name, obj)
	}
	now := e.owner
	s.markPosting(now.version)
	s.recordKept(now.NamespacedName, e.set)
	if e.set == nil {
		s.markObject(now)
		return nil
	}
	before, known := s.seen[now.NamespacedName]
	if known && before == now {
		return nil
	}
	if known && before.uid != now.uid {
		s.post(s.gone(before))
	}
	s.post(e.set)
	s.markObject(now)
	return nil
}

// Delete posts that an object was deleted, or is no longer selected. It posts nothing for an
// object that is not known.
func (s *store) Delete(obj any) error {
	o, ok := ownerOf(obj)
	if !ok {
		return fmt.Errorf("%s: unexpected %T", s.name, obj)
	}
	s.markPosting(o.version)
	s.remove(o.NamespacedName)
	return nil
}

// remove posts the deletion of an object, if it was posted before.
func (s *store) remove(name types.NamespacedName) {
	if before, known := s.seen[name]; known {
		s.post(s.gone(before))
		s.forget(name)
	}
}

// Replace posts a whole list: objects that it lacks are gone. Deletions come first, as
// they free resources. It empties the slice. An empty list of the version s.streamed stands
// for the list that stream has posted, and deletes nothing.
func (s *store) Replace(list []any, version string) error {
	s.compare(list, version)
	s.markPosting(version)
	s.postAgain()
	if version != s.streamed || len(list) > 0 {
		s.removeOthers(list)
	}
	s.streamed = ""
	for i, obj := range list {
		list[i] = nil // decoded once, the API object can go
		if err := s.Update(obj); err != nil {
			s.failed.Store(&err)
			return err
		}
	}
	s.complete()
	s.markListPosted(version)
	s.begun(nil)
	return nil
}

// removeOthers posts the deletion of every known object that is not in the list.
func (s *store) removeOthers(list []any) {
	listed := make(map[types.NamespacedName]bool, len(list))
	for _, obj := range list {
		if o, ok := ownerOf(obj); ok {
			listed[o.NamespacedName] = true
		}
	}
	for name := range s.seen {
		if !listed[name] {
			s.remove(name)
		}
	}
}

// Resync does nothing: there is no state to repeat.
func (s *store) Resync() error { return nil }

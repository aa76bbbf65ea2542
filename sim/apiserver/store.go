package apiserver

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Object is an API object as the server keeps it: never changed, only replaced.
type Object interface {
	runtime.Object
	metav1.Object
}

// Change is one entry of the history.
type Change struct {
	Revision int64
	At       time.Time
	Resource string // pods, leases.coordination.k8s.io
	Type     watch.EventType
	// Object is what is there afterwards; of a deletion, what was there, with the
	// version of the deletion. Before is nil for what is new.
	Object, Before Object
	// By is who asked for it, as the request says; "" for what came from inside.
	By string
}

// Server is an API server with its objects. It is for any goroutine.
type Server struct {
	// Lag, when set, says when a watch shows a change, at the earliest: watches
	// keep the order of their kind. It is asked once for each watch and change,
	// and must not call the server.
	Lag func(by, resource string, c *Change) time.Time
	// Stale, when set, says by how many changes a list lags that may be stale.
	Stale func(by, resource string) int
	// Skew, when set, says by how much a client's clock is ahead: the times of the
	// leases that it writes are its own.
	Skew func(by string) time.Duration
	// Version, when set, is the version that /version names.
	Version func() string
	// Changed, when set, is told of each change. It must not call the server.
	Changed func(*Change)

	mu       sync.Mutex
	revision int64
	objects  map[string]map[types.NamespacedName]Object // by resource
	history  []Change
	floor    int64                    // the revision up to which the history is compacted, except for watches under way
	made     int                      // objects, for UIDs
	restored int                      // how many backups were restored
	news     map[string]chan struct{} // by resource, and of all (""): closed at the next change
}

// Whoever asks this server lives by virtual time, which begins anew with each
// bubble. The error handler that client-go adds to its log remembers when it was
// called last: an error after one of another clock would wait for years.
func init() { utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] }

// New returns a server without objects.
func New() *Server {
	s := &Server{objects: map[string]map[types.NamespacedName]Object{}, news: map[string]chan struct{}{}, revision: 100, floor: 100}
	for i := range kinds {
		s.objects[kinds[i].key()] = map[types.NamespacedName]Object{}
	}
	return s
}

// typesOf lists the kinds of an object's Go type.
func typesOf(o runtime.Object) []schema.GroupVersionKind {
	gvks, _, _ := served.ObjectKinds(o)
	return gvks
}

func nameOf(o Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Get returns an object, nil where there is none.
func (s *Server) Get(resource, namespace, name string) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[resource][types.NamespacedName{Namespace: namespace, Name: name}]
}

// List returns all objects of a resource, by namespace and name.
func (s *Server) List(resource string) []Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sorted(s.objects[resource])
}

func sorted(objects map[types.NamespacedName]Object) []Object {
	return slices.SortedFunc(maps.Values(objects), func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
}

// Revision is the version of the last change.
func (s *Server) Revision() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// Create adds an object. The server has the object from then on.
func (s *Server) Create(o Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.create(kindOf(o), o, "")
	return err
}

// Update changes the object by a function, which gets a copy. It is an error if
// there is none.
func (s *Server) Update(resource, namespace, name string, change func(Object)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.objects[resource][types.NamespacedName{Namespace: namespace, Name: name}]
	if before == nil {
		return fmt.Errorf("%s %s/%s: not found", resource, namespace, name)
	}
	after := before.DeepCopyObject().(Object)
	change(after)
	s.replace(resource, before, after, "")
	return nil
}

// Delete deletes the object at once, if it is there.
func (s *Server) Delete(resource, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[resource][types.NamespacedName{Namespace: namespace, Name: name}]; o != nil {
		s.remove(resource, o, "")
	}
}

func (s *Server) create(k *kind, o Object, by string) (Object, error) {
	resource, name := k.key(), nameOf(o)
	if name.Name == "" {
		return nil, apierrors.NewBadRequest("name is required")
	}
	if s.objects[resource][name] != nil {
		return nil, apierrors.NewAlreadyExists(k.resource.GroupResource(), name.Name)
	}
	s.made++
	o.SetUID(types.UID(fmt.Sprintf("%s-%d", name.Name, s.made)))
	o.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	o.GetObjectKind().SetGroupVersionKind(k.gvk())
	s.record(Change{Resource: resource, Type: watch.Added, Object: o, By: by})
	return o, nil
}

// replace records a new state of an object; one that says nothing new is none.
func (s *Server) replace(resource string, before, after Object, by string) Object {
	after.SetResourceVersion(before.GetResourceVersion())
	after.SetUID(before.GetUID())
	if equal(before, after) {
		return before
	}
	s.record(Change{Resource: resource, Type: watch.Modified, Object: after, Before: before, By: by})
	return after
}

func (s *Server) remove(resource string, o Object, by string) {
	last := o.DeepCopyObject().(Object)
	s.record(Change{Resource: resource, Type: watch.Deleted, Object: last, Before: o, By: by})
}

// record appends a change to the history and makes it.
func (s *Server) record(c Change) {
	s.revision++
	c.Revision, c.At = s.revision, time.Now()
	c.Object.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	if c.Type == watch.Deleted {
		delete(s.objects[c.Resource], nameOf(c.Object))
	} else {
		s.objects[c.Resource][nameOf(c.Object)] = c.Object
	}
	s.history = append(s.history, c)
	if s.Changed != nil {
		s.Changed(&c)
	}
	s.tell(c.Resource)
	s.tell("")
}

// tell wakes who waits for news of a resource.
func (s *Server) tell(resource string) {
	if c := s.news[resource]; c != nil {
		close(c)
		delete(s.news, resource)
	}
}

func (s *Server) newsOf(resource string) chan struct{} {
	c := s.news[resource]
	if c == nil {
		c = make(chan struct{})
		s.news[resource] = c
	}
	return c
}

// Compact forgets the history: watches that begin in it, and pages, expire.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.floor = s.revision
}

// Backup is a state to which the server can be set back.
type Backup struct {
	revision int64
	objects  map[string]map[types.NamespacedName]Object
}

// Backup returns the state as it is.
func (s *Server) Backup() *Backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &Backup{revision: s.revision, objects: map[string]map[types.NamespacedName]Object{}}
	for resource, objects := range s.objects {
		b.objects[resource] = maps.Clone(objects)
	}
	return b
}

// Restore sets the server back, as when etcd is restored from a backup: versions
// and objects are those of then, and connections end. ahead is by how much the
// versions are raised (etcdutl snapshot restore --bump-revision), 0 for not at
// all.
func (s *Server) Restore(b *Backup, ahead int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision = b.revision + ahead
	s.history, s.floor = nil, s.revision
	for resource, objects := range b.objects {
		s.objects[resource] = maps.Clone(objects)
	}
	s.restored++
	for resource := range s.news { // any order: all are told
		s.tell(resource)
	}
}

// at is the objects of a resource as they were at a revision. It is false when
// that is compacted.
func (s *Server) at(resource string, revision int64) (map[types.NamespacedName]Object, bool) {
	if revision < s.floor {
		return nil, false
	}
	objects := s.objects[resource]
	cloned := false
	for i := len(s.history) - 1; i >= 0 && s.history[i].Revision > revision; i-- {
		c := &s.history[i]
		if c.Resource != resource {
			continue
		}
		if !cloned {
			objects, cloned = maps.Clone(objects), true
		}
		if c.Before == nil {
			delete(objects, nameOf(c.Object))
		} else {
			objects[nameOf(c.Object)] = c.Before
		}
	}
	return objects, true
}

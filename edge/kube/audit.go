package kube

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
)

const (
	// auditEvery is how often the objects of each kind are compared.
	auditEvery = 10 * time.Minute
	// auditPage is how many objects a request asks for. Only their metadata comes.
	auditPage = 5000
	// auditTimeout is how long a watch may take to reach the state that was read. One that
	// has nothing to say gets a bookmark each minute.
	auditTimeout = 3 * time.Minute
)

// auditor holds what Audit and Mismatch need: how to read the API server's and the
// machine's state, and the count of differences that were found.
type auditor struct {
	// known lists the machine's objects of a resource ("pods" or "nodes"); nil: the
	// machine is not compared.
	known func(ctx context.Context, resource string) ([]machine.Known, error)
	// read lists a page of the API server's objects, their metadata only.
	read    func(context.Context, schema.GroupVersionResource, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error)
	repairs atomic.Uint64 // objects so far that Audit found to differ
}

// Audits returns how many objects Audit has found so far that differed between the API server,
// the cache of the watches and the machine, because events were lost or history was changed.
func (w *Watcher) Audits() uint64 { return w.audit.repairs.Load() }

// Audit compares, kind by kind until the context ends, the caches of the watches with the
// API server, and the machine with the caches. Kinds that differ are listed again.
func (w *Watcher) Audit(ctx context.Context) {
	for {
		for _, s := range w.stores {
			if !sleep(ctx, auditEvery/time.Duration(len(w.stores))) {
				return
			}
			if s.list == nil || !s.listed() {
				continue
			}
			wrong, err := w.compareTwice(ctx, s)
			if err == nil && len(wrong) == 0 {
				wrong, err = w.compareCoreTwice(ctx, s)
				s.core.addAgain(wrong)
			}
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				w.logger.V(2).Info("Failed to compare the cache with the API server", "resource", s.resource(), "err", err)
			case len(wrong) > 0:
				w.repair(ctx, s, wrong)
			}
		}
	}
}

// repair counts and logs the differences, one of them as an example, and restarts the
// kind's watch with a new list.
func (w *Watcher) repair(ctx context.Context, s *store, wrong map[types.NamespacedName]difference) {
	w.audit.repairs.Add(uint64(len(wrong)))
	for name, d := range wrong { // any order: one of them as an example
		w.logger.Error(nil, "The cache differs from the API server; listing the resource again", "resource", s.resource(),
			"objects", len(wrong), "object", name, "cachedVersion", d.known.version, "serverVersion", d.there.version)
		break
	}
	s.reopen(ctx, true)
}

// difference is an object that differs on two sides. Either known is the object in the cache
// and there is that at the API server, or known is the object in the machine and there is that
// in the cache. The zero owner means that the object does not exist on that side.
type difference struct{ known, there owner }

// compareTwice compares the store with the API server twice and returns the objects that
// differ in the same way both times. What changed between two reads is no difference.
func (w *Watcher) compareTwice(ctx context.Context, s *store) (map[types.NamespacedName]difference, error) {
	first, err := w.compare(ctx, s)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	second, err := w.compare(ctx, s)
	return inBoth(first, second), err
}

// inBoth returns the differences that are in both maps and equal. It removes the others from
// second and returns it.
func inBoth(first, second map[types.NamespacedName]difference) map[types.NamespacedName]difference {
	for name, d := range second { // any order: each by itself
		if first[name] != d {
			delete(second, name)
		}
	}
	return second
}

// errStaysBehind means that a watch did not reach the state that compare read in auditTimeout.
var errStaysBehind = errors.New("the watch lags behind")

// compare reads the kind's objects from the API server, waits until the watch has reached
// that state, and returns the objects whose UID or version differs from the store's. An
// object that the watch has in a later version than was read is no difference. If the watch
// does not reach the state in auditTimeout, the kind is listed again, and errStaysBehind
// returned.
func (w *Watcher) compare(ctx context.Context, s *store) (map[types.NamespacedName]difference, error) {
	at, err := w.truth(ctx, s)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	if !s.waitFor(limited, at) {
		s.reopen(ctx, true)
		return nil, errStaysBehind
	}
	s.moving.Lock()
	defer s.moving.Unlock()
	differ := map[types.NamespacedName]difference{}
	for name, known := range s.seen { // any order: each by itself
		if there := at.objects[name]; known != there && !older(at.version, known.version) {
			differ[name] = difference{known, there}
		}
	}
	for name, there := range at.objects { // any order: each by itself
		if _, known := s.seen[name]; !known {
			differ[name] = difference{there: there}
		}
	}
	return differ, nil
}

// waitFor waits until the store has posted state w. It returns false if the context ends
// first.
func (s *store) waitFor(ctx context.Context, w *state) bool {
	for {
		news := s.news()
		if s.reached(w) {
			return true
		}
		select {
		case <-news:
		case <-ctx.Done():
			return false
		}
	}
}

// truth reads the identity and version of all objects of the store's kind from the API
// server, page by page, in one consistent state.
func (w *Watcher) truth(ctx context.Context, s *store) (*state, error) {
	at := &state{objects: map[types.NamespacedName]owner{}}
	o := metav1.ListOptions{Limit: auditPage, FieldSelector: s.selector}
	for {
		list, err := w.page(ctx, s, o)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", s.resource(), err)
		}
		for i := range list.Items {
			m := &list.Items[i]
			name := types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
			at.objects[name] = owner{name, m.UID, m.ResourceVersion}
		}
		at.version, o.Continue = list.ResourceVersion, list.Continue
		if o.Continue == "" {
			return at, nil
		}
	}
}

// page reads one page of object metadata, with a timeout: an audit must end.
func (w *Watcher) page(ctx context.Context, s *store, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return w.audit.read(ctx, s.api.WithResource(s.name), o)
}

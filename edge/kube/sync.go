package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// How long WaitForSync waits for the kinds that only some plugins read, after all others
// are listed.
const (
	failingTimeout = 5 * time.Second       // if listing them fails
	silentTimeout  = time.Minute           // if the API server does not answer
	syncPause      = 20 * time.Millisecond // between two checks
)

// errNoAnswer: a list or a read had no answer within its time.
var errNoAnswer = errors.New("the API server has not answered")

// Missing is a kind of objects that was never listed, or cannot be listed any more.
type Missing struct {
	Resource string // such as resourceclaims.resource.k8s.io
	Err      error  // why it is not listed; nil: the API server has not answered yet
	Required bool   // no pod is scheduled without the kind
}

// String returns a text like "pods: forbidden". It is shown to anybody, so it has only the
// HTTP status of the error: the error's text may name a user.
func (m Missing) String() string {
	status := apierrors.APIStatus(nil)
	switch {
	case m.Err == nil:
		return m.Resource + ": not listed yet"
	case apierrors.IsNotFound(m.Err):
		return m.Resource + ": not served"
	case errors.As(m.Err, &status) && http.StatusText(int(status.Status().Code)) != "":
		return m.Resource + ": " + strings.ToLower(http.StatusText(int(status.Status().Code)))
	}
	return m.Resource + ": cannot be listed"
}

// Missing returns the kinds whose objects are not known: their first list was not posted yet,
// or they are unlisted.
func (w *Watcher) Missing() []Missing {
	var missing []Missing
	for _, s := range w.stores {
		if why := s.posted(); why != nil || !s.listed() {
			missing = append(missing, Missing{Resource: s.resource(), Err: cmp.Or(s.failure(), why), Required: s.kind == nil})
		}
	}
	return missing
}

// Watch is the state of the watch of one kind, also of one that is not missing. Err is why
// its last list failed; nil: it did not.
type Watch struct {
	Missing
	Synced bool      // its first list was posted, and the kind is not unlisted now
	Heard  time.Time // when it last showed a resource version; zero: never
}

// Watches returns the state of each watch, sorted by resource.
func (w *Watcher) Watches() []Watch {
	var watches []Watch
	for _, s := range w.stores {
		s.moving.Lock()
		heard := s.heard
		s.moving.Unlock()
		watches = append(watches, Watch{Missing{Resource: s.resource(), Err: s.failure(), Required: s.kind == nil}, s.listed() && s.posted() == nil, heard})
	}
	slices.SortFunc(watches, func(a, b Watch) int { return strings.Compare(a.Resource, b.Resource) })
	return watches
}

// WaitForSync waits until the first lists of all kinds were posted. For the kinds that only
// some plugins read it waits no longer than failingTimeout or silentTimeout, and not if they
// are not served: it posts them as unlisted, and their lists are still retried. It returns
// false if the context ends first.
func (w *Watcher) WaitForSync(ctx context.Context) bool {
	for _, m := range w.stores {
		if m.kind != nil {
			continue
		}
		select {
		case <-m.synced:
		case <-ctx.Done():
			return false
		}
	}
	start := time.Now()
	for _, m := range w.stores {
		for !m.listed() {
			waited, err := time.Since(start), m.failure()
			if err == nil && waited >= w.silent {
				err = errNoAnswer
			}
			if err != nil && (waited >= w.failing || apierrors.IsNotFound(err)) {
				m.giveUp(err)
				break
			}
			if !sleep(ctx, syncPause) {
				return false
			}
		}
	}
	return true
}

// resource returns the resource with its group, such as resourceclaims.resource.k8s.io.
func (s *store) resource() string {
	if s.api.Group == "" {
		return s.name
	}
	return s.name + "." + s.api.Group
}

// listed reports whether everything in the first list was posted.
func (s *store) listed() bool {
	select {
	case <-s.synced:
		return true
	default:
		return false
	}
}

// posted returns the error for which the kind is unlisted now; nil if it is not. This includes
// a kind for which absent is true, though no KindUnlisted was posted for it.
func (s *store) posted() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unlisted
}

// failure returns why the last list failed; nil if it did not, or has not ended yet.
func (s *store) failure() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// recordFailures changes lw so that the store records why its objects cannot be listed, and
// returns it. A kind that only some plugins read is posted as unlisted when it is not served,
// even if it was served before: nobody knows what became of its objects. DeviceTaintRules are
// not posted as unlisted (absent): those that are known stay in force.
func (s *store) recordFailures(lw *cache.ListWatch) *cache.ListWatch {
	list := lw.ListWithContextFunc
	lw.ListWithContextFunc = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		l, err := list(ctx, o)
		if err == nil && !meta.IsListType(l) { // the reflector fails on it, and records no reason
			err = fmt.Errorf("%s: unexpected %T instead of a list", s.name, l)
		}
		switch {
		case err == nil:
			s.failed.Store(nil)
		case ctx.Err() == nil: // else the end broke the list off
			s.failed.Store(&err)
			if s.kind != nil && apierrors.IsNotFound(err) {
				s.mu.Lock()
				s.unlist(err)
				s.mu.Unlock()
			}
		}
		return l, err
	}
	return lw
}

// giveUp posts the store's kind as unlisted because of err, so that the machine decides
// without its objects, unless it was listed meanwhile.
func (s *store) giveUp(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.listed() {
		s.unlist(err)
	}
}

// absent reports whether the kind is DeviceTaintRules and err says that the API server does
// not serve it. Such a server is of an earlier version, for which no DeviceTaintRule counts,
// so pods are scheduled without them. s.kind must be set.
func (s *store) absent(err error) bool {
	return *s.kind == object.DeviceTaintRules && apierrors.IsNotFound(err)
}

// unlist records that the kind is unlisted because of err. It posts KindUnlisted, once until a
// list succeeds, unless the kind is absent. The caller holds mu.
func (s *store) unlist(err error) {
	switch {
	case s.unlisted != nil && (!s.absent(s.unlisted) || s.absent(err)):
		return
	case s.absent(err):
		s.unlisted = err
		s.logger.Info("A resource is not served; no object of it counts", "resource", s.resource())
		return
	}
	s.unlisted = err
	s.logger.Error(err, "Failed to list a resource; pods that need it are not scheduled", "resource", s.resource())
	s.post(machine.KindUnlisted{Kind: *s.kind, Err: err})
}

// complete records that a whole list was posted, and so that the kind is no longer unlisted.
// The first call closes synced. It posts KindListed if KindUnlisted was posted for the kind.
func (s *store) complete() {
	s.failed.Store(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.listed() {
		close(s.synced)
	}
	if s.unlisted == nil {
		return
	}
	s.logger.Info("Listed a resource that could not be listed before", "resource", s.resource())
	if !s.absent(s.unlisted) {
		s.post(machine.KindListed{Kind: *s.kind})
	}
	s.unlisted = nil
}

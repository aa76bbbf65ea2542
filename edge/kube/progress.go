package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

const (
	// markPage is how many objects of a kind Mark reads at most. If there are no more, a
	// store that holds exactly these objects has reached the state.
	markPage = 500
	// bookmarkSoonTimeout is how many seconds a watch lasts from which a bookmark is wanted.
	// An API server sends one 2 s, give or take a second, before a watch ends.
	bookmarkSoonTimeout int64 = 3
	// youngWatch is the age before which a watch is not stopped: client-go lists again
	// after a watch of less than a second without an event.
	youngWatch = 1100 * time.Millisecond
	// reopenAfter is how long a watch may take to show a state before it is opened anew.
	// After relistAfter such times its objects are listed anew.
	reopenAfter = 5 * time.Second
	relistAfter = 3
	// A read that failed is tried again after markRetry. The wait doubles up to markRetryLimit.
	markRetry, markRetryLimit = 100 * time.Millisecond, 2 * time.Second
)

// Mark is a state of the cluster, to be waited for with Reach. A kind that could not be read
// is not in kinds.
type Mark struct{ kinds map[*store]state }

// state is a state of one kind of objects.
type state struct {
	version string                         // of the list that was read
	objects map[types.NamespacedName]owner // those that were read: by Mark, one page only
	whole   bool                           // Mark read them all; reached then compares them
}

// progress is how far a store has posted the API's changes, and the state that reach waits for.
type progress struct {
	list cache.ListWithContextFunc // lists objects for mark; nil: another informer fills the store

	moving  sync.Mutex      // guards the fields below, and writes to seen
	shown   string          // the resource version up to which every change was posted
	heard   time.Time       // when shown was last set
	told    string          // the version of the last change that was posted or is being posted
	moved   chan struct{}   // closed when shown is set; nil: nobody waits for that
	wanted  *state          // the state that reach waits for; nil: none
	waiting time.Time       // when reach began to wait
	relist  bool            // the reflector must list anew instead of resuming its watch
	behind  bool            // as relist, but only until reach returns
	current watch.Interface // the open watch; nil: none
	opened  time.Time       // when a watch was last opened, or its first list ended
	marking time.Time       // when mark began to read the state; zero: it does not run
	unread  error           // why the last read by mark failed; nil: it did not
}

// markObject records o as the version of its object that was posted.
func (s *store) markObject(o owner) {
	s.moving.Lock()
	defer s.moving.Unlock()
	s.seen[o.NamespacedName] = o
}

// forget removes an object whose deletion was posted.
func (s *store) forget(name types.NamespacedName) {
	s.moving.Lock()
	defer s.moving.Unlock()
	delete(s.seen, name)
	delete(s.core.unkept, name)
}

// markPosting records that a change of this resource version is about to be posted.
func (s *store) markPosting(version string) {
	s.moving.Lock()
	defer s.moving.Unlock()
	if !AsFar(s.told, version) {
		s.told = version
	}
}

// markListPosted records that a whole list of this resource version was posted.
func (s *store) markListPosted(version string) {
	s.moving.Lock()
	s.told = version
	s.moving.Unlock()
	s.markPosted(version)
}

// markPosted records that every change up to version was posted to the loop.
func (s *store) markPosted(version string) {
	s.moving.Lock()
	defer s.moving.Unlock()
	s.shown, s.heard = version, time.Now()
	if s.moved != nil {
		close(s.moved)
		s.moved = nil
	}
}

// reached reports whether the store has posted state w or a later one.
func (s *store) reached(w *state) bool {
	s.moving.Lock()
	defer s.moving.Unlock()
	return s.shown != "" && (!older(s.shown, w.version) || w.whole && maps.Equal(s.seen, w.objects))
}

// inMarks reports whether a Mark includes the store: its objects use resources or provide
// them. A store that somebody else's informer fills is not included, since its watch
// cannot be restarted.
func (s *store) inMarks() bool {
	if s.list == nil {
		return false
	}
	switch s.name {
	case "pods", "nodes", "persistentvolumes", "persistentvolumeclaims", "resourceclaims":
		return true
	}
	return false
}

// Mark reads the present state of all objects that use or provide resources, until the reads
// succeed. A kind that only some plugins need and that cannot be read is left out, and posted
// as unlisted. It returns false if the context ends first.
func (w *Watcher) Mark(ctx context.Context) (*Mark, bool) {
	m := &Mark{map[*store]state{}}
	var mu sync.Mutex
	ok := w.eachInMarks(func(s *store) bool {
		at, err := s.mark(ctx, w.failing, w.silent)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			m.kinds[s] = at
		}
		return ctx.Err() == nil
	})
	return m, ok
}

// Reach waits until everything up to the mark was posted. A kind that only some plugins
// need, and that cannot be listed or stays behind for long, is posted as unlisted. It
// returns false if the context ends first.
func (w *Watcher) Reach(ctx context.Context, m *Mark) bool {
	return w.eachInMarks(func(s *store) bool {
		at, known := m.kinds[s]
		switch {
		case !known:
			return true
		case s.kind == nil:
			return s.reach(ctx, &at)
		}
		return s.reachOrForgo(ctx, &at, w.failing, w.silent)
	})
}

// eachInMarks calls f concurrently for each store that Marks include, and waits for all
// calls. It reports whether all return true.
func (w *Watcher) eachInMarks(f func(*store) bool) bool {
	said := make(chan bool)
	n := 0
	for _, s := range w.stores {
		if s.inMarks() {
			n++
			go func() { said <- f(s) }()
		}
	}
	all := true
	for range n {
		all = <-said && all
	}
	return all
}

// Behind returns a sorted text for each kind that has not reached the state that Reach waits
// for, or whose state Mark cannot read. The text has the reason.
func (w *Watcher) Behind() []string {
	var behind []string
	for _, s := range w.stores {
		if err := s.unmarked(); err != nil {
			behind = append(behind, Missing{Resource: s.resource(), Err: err}.String())
		}
		s.moving.Lock()
		if s.wanted != nil {
			behind = append(behind, fmt.Sprintf("%s: version %q of %q", s.resource(), s.shown, s.wanted.version))
		}
		s.moving.Unlock()
	}
	slices.Sort(behind)
	return behind
}

// Unreadable returns the kinds without which nothing is decided and that cannot be read: the
// first list fails, Mark cannot read the state, or Reach waits while lists fail, or for longer
// than w.silent.
func (w *Watcher) Unreadable() []Missing {
	var unreadable []Missing
	for _, s := range w.stores {
		err := s.unmarked()
		waited := s.waited()
		if err == nil && (!s.listed() || waited > 0) {
			err = s.failure()
		}
		if err == nil && waited > w.silent {
			err = errNoAnswer
		}
		if s.kind == nil && err != nil {
			unreadable = append(unreadable, Missing{Resource: s.resource(), Err: err, Required: true})
		}
	}
	return unreadable
}

// unmarked returns why mark cannot read the state of the store's objects: its last error, or
// errNoAnswer after reopenAfter without an answer. nil: mark can read it, or does not run.
func (s *store) unmarked() error {
	s.moving.Lock()
	defer s.moving.Unlock()
	if s.unread == nil && !s.marking.IsZero() && time.Since(s.marking) > reopenAfter {
		return errNoAnswer
	}
	return s.unread
}

// waited returns how long somebody has waited for the store to reach a state, 0 if nobody
// does.
func (s *store) waited() time.Duration {
	s.moving.Lock()
	defer s.moving.Unlock()
	if s.wanted == nil {
		return 0
	}
	return time.Since(s.waiting)
}

// mark reads the store's objects from the API server: a new leader waits for that state. It
// tries until the context ends, each time up to silent. It gives up a kind that only some
// plugins read (forgo), and returns the error, if the kind is not found, was never listed, or
// has failed for the time failing.
func (s *store) mark(ctx context.Context, failing, silent time.Duration) (at state, err error) {
	start := time.Now()
	s.setMarking(start, nil)
	defer s.setMarking(time.Time{}, nil)
	var once sync.Once
	say := func(err error) {
		once.Do(func() {
			s.logger.Error(err, "Not scheduling until the writes of the former leader can be read", "resource", s.resource(), "since", start)
		})
	}
	hangs := time.AfterFunc(reopenAfter, func() { say(errNoAnswer) })
	defer hangs.Stop()
	for delay := markRetry; ; delay = min(2*delay, markRetryLimit) {
		if at, err = s.read(ctx, silent); err == nil || ctx.Err() != nil {
			return at, err
		}
		if s.kind != nil && (apierrors.IsNotFound(err) || time.Since(start) >= failing || !s.listed()) {
			s.forgo(ctx, err)
			return at, err
		}
		say(err)
		s.setMarking(start, err)
		if !sleep(ctx, delay) {
			return at, ctx.Err()
		}
	}
}

// setMarking records when mark began (zero: it does not run), and its last error.
func (s *store) setMarking(since time.Time, unread error) {
	s.moving.Lock()
	defer s.moving.Unlock()
	s.marking, s.unread = since, unread
}

// forgo posts the store's kind as unlisted because of err, unless its first list is still to
// come, and restarts its watch with a new list.
func (s *store) forgo(ctx context.Context, err error) {
	s.mu.Lock()
	if s.listed() {
		s.unlist(err)
	}
	s.mu.Unlock()
	s.reopen(ctx, true)
}

// read lists markPage of the store's objects from the API server (one, before the first list
// was posted). It returns their versions and the list's. It waits no longer than silent.
func (s *store) read(ctx context.Context, silent time.Duration) (state, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, silent, errNoAnswer)
	defer cancel()
	limit := int64(1)
	if s.listed() {
		limit = markPage
	}
	list, err := s.list(ctx, metav1.ListOptions{Limit: limit})
	switch {
	case err != nil && ctx.Err() != nil:
		return state{}, context.Cause(ctx)
	case err != nil:
		return state{}, err
	}
	head, err := meta.ListAccessor(list)
	if err != nil {
		return state{}, err
	}
	at := state{version: head.GetResourceVersion(), objects: map[types.NamespacedName]owner{}, whole: head.GetContinue() == ""}
	return at, meta.EachListItem(list, func(o runtime.Object) error {
		m, err := meta.Accessor(o)
		if err == nil {
			o := named(m)
			at.objects[o.NamespacedName] = o
		}
		return err
	})
}

// reachOrForgo waits until the store has posted the state or a later one. It gives up, and
// posts the kind as unlisted, if its lists fail throughout the time failing, if the kind is not
// served, or after the time silent. It returns false only if ctx ends first.
func (s *store) reachOrForgo(ctx context.Context, w *state, failing, silent time.Duration) bool {
	limited, cancel := context.WithTimeoutCause(ctx, silent, errNoAnswer)
	defer cancel()
	reaching, stop := context.WithCancelCause(limited)
	defer stop(nil)
	go s.stopFailing(reaching, failing, stop)
	if s.reach(reaching, w) {
		return true
	}
	if ctx.Err() != nil {
		return false
	}
	s.forgo(ctx, context.Cause(reaching))
	return true
}

// stopFailing waits until the store's lists have failed for the time failing, or are not
// served, and calls stop with the error. It returns then, or when ctx ends. A failure from
// before the call counts only when it comes again: client-go may not have tried since.
func (s *store) stopFailing(ctx context.Context, failing time.Duration, stop context.CancelCauseFunc) {
	before, since := s.failed.Load(), time.Now()
	for sleep(ctx, markRetry) {
		last := s.failed.Load()
		switch {
		case last == nil || last == before:
			since = time.Now()
		case time.Since(since) >= failing || apierrors.IsNotFound(*last):
			stop(*last)
			return
		}
	}
}

// reach waits until the store has posted the state. It returns false if the context ends
// first. A quiet watch shows its version once a minute only, so it is restarted, which brings
// a bookmark soon. After relistAfter tries the objects are listed again, with more time each.
func (s *store) reach(ctx context.Context, w *state) bool {
	if s.reached(w) {
		return true
	}
	s.want(w)
	defer s.want(nil)
	patience := reopenAfter
	for tries := 1; !s.reached(w); tries++ {
		if tries == 2 {
			s.logger.Info("Not scheduling until the watch has shown the writes of the former leader", "resource", s.resource(), "version", w.version)
		}
		if tries > relistAfter {
			patience *= 2
		}
		if s.listed() {
			s.staysBehind(tries > relistAfter)
			s.reopen(ctx, false)
		}
		if !s.await(ctx, w, patience) {
			return false
		}
		if tries > 1 && s.reached(w) {
			s.logger.Info("The watch has shown the writes of the former leader", "resource", s.resource(), "version", w.version)
		}
	}
	return true
}

// want records the state that reach waits for from now on; nil: it waits no longer.
func (s *store) want(w *state) {
	s.moving.Lock()
	defer s.moving.Unlock()
	s.wanted, s.waiting, s.behind = w, time.Now(), false
}

// staysBehind sets whether the objects are to be listed again for reach.
func (s *store) staysBehind(relist bool) {
	s.moving.Lock()
	defer s.moving.Unlock()
	s.behind = relist
}

// reopen ends the open watch, if any, so that the reflector starts another or, with relist,
// lists the objects again. It first waits until the watch is youngWatch old, or ctx ends.
func (s *store) reopen(ctx context.Context, relist bool) {
	s.moving.Lock()
	w, age := s.current, time.Since(s.opened)
	s.relist = s.relist || relist
	s.moving.Unlock()
	if age < youngWatch && !sleep(ctx, youngWatch-age) || w == nil {
		return
	}
	w.Stop()
}

// await waits until the store has posted the state, but no longer than d. It returns
// false only if the context ends first.
func (s *store) await(ctx context.Context, w *state, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for !s.reached(w) {
		select {
		case <-s.news():
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// news returns a channel that is closed when the store posts a later version.
func (s *store) news() <-chan struct{} {
	s.moving.Lock()
	defer s.moving.Unlock()
	if s.moved == nil {
		s.moved = make(chan struct{})
	}
	return s.moved
}

// errRelist makes the reflector list again instead of resuming its watch.
var errRelist = apierrors.NewResourceExpired("the watch lags behind")

// bookmarkSoon wraps lw: while reach waits, a watch sends a bookmark soon, and a watch that
// lags behind is replaced by a list. It records the watch that is open.
func (s *store) bookmarkSoon(lw *cache.ListWatch) *cache.ListWatch {
	open := lw.WatchFuncWithContext
	lw.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		if !s.prepare(&o) {
			return nil, errRelist
		}
		w, err := open(ctx, o)
		if err != nil {
			return nil, err
		}
		w = newRelay(w, unchanged)
		s.begun(w)
		if s.watching != nil {
			s.watching()
		}
		return w, nil
	}
	return lw
}

// prepare sets the options of the next watch, and records that none is open. It returns false
// if there must be no watch, because the objects are to be listed from nothing.
func (s *store) prepare(o *metav1.ListOptions) bool {
	s.moving.Lock()
	defer s.moving.Unlock()
	s.current = nil
	list := o.SendInitialEvents != nil
	if (s.relist || s.behind) && o.ResourceVersion != "" {
		if list { // the list that follows a watch has a version, too
			s.relist, s.behind = false, false
		}
		return false
	}
	if timeout := bookmarkSoonTimeout; s.wanted != nil && !list {
		o.TimeoutSeconds = &timeout
	}
	return true
}

// begun records that watch w was opened now; nil: that the first list of the open one ended.
func (s *store) begun(w watch.Interface) {
	s.moving.Lock()
	defer s.moving.Unlock()
	if w != nil {
		s.current = w
	}
	s.opened = time.Now()
}

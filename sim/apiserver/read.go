package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// selection is which objects of a kind a list or watch is about.
type selection struct {
	namespace string
	fields    fields.Selector
}

func selected(r *http.Request, t target) (selection, error) {
	f, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		return selection{}, apierrors.NewBadRequest(err.Error())
	}
	return selection{t.namespace, f}, nil
}

func (s selection) has(o Object) bool {
	if o == nil || s.namespace != "" && o.GetNamespace() != s.namespace {
		return false
	}
	set := fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()}
	if p, ok := o.(*v1.Pod); ok {
		set["status.phase"], set["spec.nodeName"], set["spec.schedulerName"] = string(p.Status.Phase), p.Spec.NodeName, p.Spec.SchedulerName
	}
	return s.fields.Matches(set)
}

// tooLarge is the answer to who asks for a version that is yet to come.
func tooLarge(wanted, now int64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", wanted, now), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

func expired(of int64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("The resourceVersion for the provided watch or list is too old: %d", of))
}

// freshWait is how long a read waits for a version that is yet to come.
const freshWait = 3 * time.Second

// waitFor waits until the server has come to the version.
func (s *Server) waitFor(ctx context.Context, version int64) error {
	deadline := time.NewTimer(freshWait)
	defer deadline.Stop()
	for {
		s.mu.Lock()
		now, news := s.revision, s.newsOf("")
		s.mu.Unlock()
		if now >= version {
			return nil
		}
		select {
		case <-news:
		case <-deadline.C:
			return tooLarge(version, now)
		case <-ctx.Done():
			return tooLarge(version, now)
		}
	}
}

// list answers a list, or one page of it.
func (s *Server) list(w http.ResponseWriter, r *http.Request, t target) {
	f := formatOf(r)
	list, err := s.page(r, t)
	if err != nil {
		f.refuse(w, err)
		return
	}
	f.answer(w, http.StatusOK, list)
}

func (s *Server) page(r *http.Request, t target) (runtime.Object, error) {
	query := r.URL.Query()
	limit, err := number(query.Get("limit"))
	if err != nil {
		return nil, err
	}
	of, err := selected(r, t)
	if err != nil {
		return nil, err
	}
	version, err := number(query.Get("resourceVersion"))
	if err != nil {
		return nil, err
	}
	if err := s.waitFor(r.Context(), version); err != nil {
		return nil, err
	}
	resource := t.kind.key()
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.revision
	if query.Get("resourceVersion") != "" && s.Stale != nil { // any state of that version or newer will do
		at = max(at-int64(s.Stale(By(r.Context()), resource)), version, s.floor)
	}
	after := types.NamespacedName{}
	if token := query.Get("continue"); token != "" {
		parts := strings.SplitN(token, "/", 3)
		if at, err = number(parts[0]); err != nil || len(parts) != 3 {
			return nil, apierrors.NewBadRequest("continue")
		}
		after = types.NamespacedName{Namespace: parts[1], Name: parts[2]}
	}
	objects, kept := s.at(resource, at)
	if !kept {
		return nil, expired(at)
	}
	return pageOf(t.kind, sorted(objects), of, at, after, int(limit))
}

// pageOf builds the list of those objects that come after a name, as many as the
// limit says; 0 is no limit.
func pageOf(k *kind, objects []Object, of selection, at int64, after types.NamespacedName, limit int) (runtime.Object, error) {
	list, err := served.New(k.resource.GroupVersion().WithKind(k.kind + "List"))
	if err != nil {
		return nil, err
	}
	list.GetObjectKind().SetGroupVersionKind(k.resource.GroupVersion().WithKind(k.kind + "List"))
	var items []runtime.Object
	token := ""
	for _, o := range objects {
		name := nameOf(o)
		if !of.has(o) || after.Name != "" && (name.Namespace < after.Namespace || name.Namespace == after.Namespace && name.Name <= after.Name) {
			continue
		}
		if limit > 0 && len(items) == limit {
			last := items[limit-1].(Object)
			token = fmt.Sprintf("%d/%s/%s", at, last.GetNamespace(), last.GetName())
			break
		}
		items = append(items, o)
	}
	if err := meta.SetList(list, items); err != nil {
		return nil, err
	}
	head, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	head.SetResourceVersion(strconv.FormatInt(at, 10))
	head.SetContinue(token)
	return list, nil
}

// An idle watch gets a bookmark so often, and so long before it times out.
const (
	bookmarkEvery = time.Minute
	bookmarkLast  = 2 * time.Second
)

// watching is a watch under way.
type watching struct {
	server    *Server
	by        string
	resource  string
	kind      *kind
	of        selection
	out       *events
	at        int64 // the version up to which all has been shown
	last      time.Time
	restored  int
	bookmarks bool
	due       time.Time // the next bookmark
	ends      time.Time // when the watch times out; zero: never
}

// watch shows changes until the client, the timeout or a restored backup ends it.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, t target) {
	f, query := formatOf(r), r.URL.Query()
	of, err := selected(r, t)
	if err != nil {
		f.refuse(w, err)
		return
	}
	version, err := number(query.Get("resourceVersion"))
	if err != nil {
		f.refuse(w, err)
		return
	}
	ctx := r.Context()
	if seconds, _ := number(query.Get("timeoutSeconds")); seconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
	}
	initial := query.Get("sendInitialEvents") == "true"
	if initial {
		if err := s.waitFor(ctx, version); err != nil {
			f.refuse(w, err)
			return
		}
	}
	g := &watching{server: s, by: By(r.Context()), resource: t.kind.key(), kind: t.kind, of: of, at: version,
		bookmarks: query.Get("allowWatchBookmarks") == "true"}
	g.ends, _ = ctx.Deadline()
	g.plan()
	g.out = f.events(w)
	if initial || version == 0 {
		err = g.sendInitial(initial)
	} else {
		err = g.resume(version)
	}
	for err == nil {
		err = g.next(ctx)
	}
}

// resume goes on from a version, if what came after it is not compacted.
func (g *watching) resume(version int64) error {
	s := g.server
	s.mu.Lock()
	g.restored = s.restored
	gone := version < s.floor
	s.mu.Unlock()
	if !gone {
		return nil
	}
	status := expired(version).(*apierrors.StatusError)
	if err := g.out.send(watch.Error, StatusObject(status.ErrStatus)); err != nil {
		return err
	}
	return errEnded
}

// sendInitial sends what is there now.
func (g *watching) sendInitial(marked bool) error {
	s := g.server
	s.mu.Lock()
	objects := sorted(s.objects[g.resource])
	g.at, g.restored = s.revision, s.restored
	s.mu.Unlock()
	for _, o := range objects {
		if g.of.has(o) {
			if err := g.out.send(watch.Added, o); err != nil {
				return err
			}
		}
	}
	if !marked {
		return nil
	}
	return g.bookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
}

func (g *watching) bookmark(annotations map[string]string) error {
	o, err := served.New(g.kind.gvk())
	if err != nil {
		return err
	}
	o.GetObjectKind().SetGroupVersionKind(g.kind.gvk())
	o.(Object).SetResourceVersion(strconv.FormatInt(g.at, 10))
	o.(Object).SetAnnotations(annotations)
	return g.out.send(watch.Bookmark, o)
}

var errEnded = fmt.Errorf("the watch has ended")

// next shows the next changes, or waits for some.
func (g *watching) next(ctx context.Context) error {
	s := g.server
	s.mu.Lock()
	if g.restored != s.restored {
		s.mu.Unlock()
		return errEnded
	}
	pending := g.pending()
	news := s.newsOf(g.resource)
	s.mu.Unlock()
	if len(pending) == 0 {
		return g.idle(ctx, news)
	}
	for i := range pending {
		c := &pending[i]
		if s.Lag != nil {
			if at := s.Lag(g.by, g.resource, c); at.After(g.last) {
				g.last = at
			}
		}
		if !until(ctx, g.last) {
			return errEnded
		}
		if err := g.show(c); err != nil {
			return err
		}
		g.at = c.Revision
	}
	return nil
}

// pending is what is still to be shown.
func (g *watching) pending() (pending []Change) {
	s := g.server
	for i := len(s.history) - 1; i >= 0 && s.history[i].Revision > g.at; i-- {
		if c := s.history[i]; c.Resource == g.resource {
			pending = append(pending, c)
		}
	}
	slices.Reverse(pending)
	if len(pending) == 0 {
		g.at = max(g.at, s.revision)
	}
	return pending
}

// plan says when the next bookmark is due.
func (g *watching) plan() {
	g.due = time.Now().Add(bookmarkEvery)
	if last := g.ends.Add(-bookmarkLast); time.Now().Before(last) && last.Before(g.due) {
		g.due = last
	}
}

// idle waits for news. A watch from a version that is yet to come waits, too.
func (g *watching) idle(ctx context.Context, news chan struct{}) error {
	timer := time.NewTimer(time.Until(g.due))
	defer timer.Stop()
	select {
	case <-news:
		return nil
	case <-timer.C:
		g.plan()
		s := g.server
		s.mu.Lock()
		idle := g.restored == s.restored && len(g.pending()) == 0
		s.mu.Unlock()
		if idle && g.bookmarks {
			return g.bookmark(nil)
		}
		return nil
	case <-ctx.Done():
		return errEnded
	}
}

// show sends a change as the selection sees it.
func (g *watching) show(c *Change) error {
	before, after := g.of.has(c.Before), c.Type != watch.Deleted && g.of.has(c.Object)
	switch {
	case before && after:
		return g.out.send(watch.Modified, c.Object)
	case after:
		return g.out.send(watch.Added, c.Object)
	case before:
		last := c.Object
		if c.Type != watch.Deleted { // it left the selection: as it was, with the new version
			last = c.Before.DeepCopyObject().(Object)
			last.SetResourceVersion(c.Object.GetResourceVersion())
		}
		return g.out.send(watch.Deleted, last)
	}
	return nil
}

// until waits for a time. It is false when the context ended first.
func until(ctx context.Context, at time.Time) bool {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

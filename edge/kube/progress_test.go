package kube

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/logs/logstest"
	"github.com/berth-scheduler/berth/sim/apiserver"
)

type direct struct{ server *apiserver.Server }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	return apiserver.Do(d.server, r), nil
}

// follows runs a test with a watcher of that many pods, whose nodes it notes when
// the machine is told of them.
func follows(t *testing.T, pods int, test func(t *testing.T, s *apiserver.Server, w *Watcher, told func(name string) string)) {
	synctest.Test(t, func(t *testing.T) {
		s := apiserver.New()
		for i := range pods {
			if err := s.Create(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("p", i)}}); err != nil {
				t.Fatal(err)
			}
		}
		clients, err := NewClients(&rest.Config{Host: "http://api", Transport: direct{s}, QPS: -1}, always)
		if err != nil {
			t.Fatal(err)
		}
		nodes := make(chan map[string]string, 1)
		nodes <- map[string]string{}
		w := NewWatcher(clients, nil, func(e machine.Event) {
			if set, ok := e.(machine.PodSet); ok {
				known := <-nodes
				known[set.Pod.Name] = set.Pod.NodeName
				nodes <- known
			}
		}, klog.Background())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		if !w.WaitForSync(ctx) {
			t.Fatal("not synced")
		}
		time.Sleep(time.Minute)
		test(t, s, w, func(name string) string {
			known := <-nodes
			defer func() { nodes <- known }()
			return known[name]
		})
		cancel()
		<-done
		time.Sleep(time.Minute) // client-go's own retries
	})
}

func bound(t *testing.T, s *apiserver.Server, name string) {
	t.Helper()
	if err := s.Update("pods", "ns", name, func(o apiserver.Object) { o.(*v1.Pod).Spec.NodeName = "n" }); err != nil {
		t.Fatal(err)
	}
}

// reached is how long it takes until the watcher has shown what is written now.
func reached(t *testing.T, w *Watcher) time.Duration {
	t.Helper()
	begin := time.Now()
	m, ok := w.Mark(t.Context())
	if !ok || !w.Reach(t.Context(), m) {
		t.Fatal("the context has ended")
	}
	if behind := w.Behind(); len(behind) > 0 {
		t.Errorf("behind: %v", behind)
	}
	return time.Since(begin)
}

// Where nothing has happened nobody waits for a word of the API server: a short
// list says that all is known. Of many pods a bookmark says so, soon.
func TestReachInAQuietCluster(t *testing.T) {
	for pods, want := range map[int]time.Duration{0: 0, 3: 0, 1000: 2 * time.Second} {
		follows(t, pods, func(t *testing.T, s *apiserver.Server, w *Watcher, _ func(string) string) {
			_ = s.Create(&v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}}) // the version is not that of the last pod
			if took := reached(t, w); took > want {
				t.Errorf("%d pods: %s, want %s", pods, took, want)
			}
		})
	}
}

// unlistable refuses to list a resource, while it is set, or lets lists of it hang until
// their ends.
type unlistable struct {
	direct
	resource atomic.Pointer[string]
	hang     bool
}

func (f *unlistable) RoundTrip(r *http.Request) (*http.Response, error) {
	if of := f.resource.Load(); of != nil && strings.HasSuffix(r.URL.Path, "/"+*of) && (!r.URL.Query().Has("watch") || r.URL.Query().Has("sendInitialEvents")) {
		if f.hang {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		w := httptest.NewRecorder()
		w.WriteHeader(http.StatusForbidden)
		return w.Result(), nil
	}
	return f.direct.RoundTrip(r)
}

// unlist runs a test with a synced watcher of volumes, too, and what it posts.
func unlist(t *testing.T, wire *unlistable, test func(t *testing.T, ctx context.Context, w *Watcher, posted chan string)) {
	synctest.Test(t, func(t *testing.T) {
		wire.server = apiserver.New()
		clients, err := NewClients(&rest.Config{Host: "http://api", Transport: wire, QPS: -1}, always)
		if err != nil {
			t.Fatal(err)
		}
		posted := make(chan string, 10)
		w := NewWatcher(clients, []object.Kind{object.PersistentVolumes}, func(e machine.Event) { posted <- fmt.Sprintf("%T", e) }, klog.Background())
		ctx, cancel := context.WithCancel(t.Context())
		go w.Run(ctx)
		if !w.WaitForSync(ctx) {
			t.Fatal("not synced")
		}
		test(t, ctx, w, posted)
		cancel()
		time.Sleep(time.Minute) // client-go's own retries
	})
}

// A kind that was listed and may not be read any more counts as unlisted, if only some
// plugins read it, until it is listed again. Pods are waited for, and named.
func TestMarkOfAKindThatMayNotBeRead(t *testing.T) {
	wire := &unlistable{}
	unlist(t, wire, func(t *testing.T, ctx context.Context, w *Watcher, posted chan string) {
		volumes, pods := "persistentvolumes", "pods"
		wire.resource.Store(&volumes)
		for range 2 { // the second leader that leaves may find it unlisted
			begin := time.Now()
			if m, ok := w.Mark(ctx); !ok || !w.Reach(ctx, m) || time.Since(begin) > failingTimeout+2*markRetryLimit {
				t.Fatalf("marked %t after %s", ok, time.Since(begin))
			}
		}
		if got := <-posted; got != "machine.KindUnlisted" || len(w.Unreadable()) > 0 {
			t.Errorf("posted %s, unreadable %v", got, w.Unreadable())
		}
		wire.resource.Store(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(posted); n != 1 || <-posted != "machine.KindListed" {
			t.Errorf("%d posted, want that it is listed after all", n)
		}

		wire.resource.Store(&pods)
		marking, end := context.WithTimeout(ctx, 40*time.Second)
		go func() {
			time.Sleep(30 * time.Second)
			if behind := fmt.Sprint(w.Behind(), w.Unreadable()); behind != "[pods: forbidden] [pods: forbidden]" {
				t.Errorf("behind, and unreadable: %s", behind)
			}
		}()
		if _, ok := w.Mark(marking); ok || len(posted) > 0 || len(w.Behind()) > 0 {
			t.Errorf("marked %t, %d posted, behind %v", ok, len(posted), w.Behind())
		}
		end()
	})
}

// Nor does a read without an answer hold anybody up for good: volumes count as unlisted
// after a while, and pods are named as unreadable, and read anew.
func TestMarkThatHangs(t *testing.T) {
	wire := &unlistable{hang: true}
	unlist(t, wire, func(t *testing.T, ctx context.Context, w *Watcher, posted chan string) {
		volumes, pods := "persistentvolumes", "pods"
		wire.resource.Store(&volumes)
		marking, end := context.WithTimeout(ctx, time.Hour)
		defer end()
		var said logstest.Sink
		for _, s := range w.stores {
			s.logger = said.Logger()
		}
		begin := time.Now()
		if m, ok := w.Mark(marking); !ok || !w.Reach(ctx, m) || time.Since(begin) > silentTimeout+2*time.Second {
			t.Fatalf("marked %t after %s", ok, time.Since(begin))
		}
		if got := <-posted; got != "machine.KindUnlisted" || len(w.Unreadable()) > 0 {
			t.Errorf("posted %s, unreadable %v", got, w.Unreadable())
		}

		wire.resource.Store(&pods)
		go func() {
			time.Sleep(reopenAfter + time.Second)
			if unreadable := fmt.Sprint(w.Unreadable()); unreadable != "[pods: cannot be listed]" {
				t.Errorf("unreadable: %s", unreadable)
			}
			if n := hangsSaid(&said); n != 1 {
				t.Errorf("%d lines say that a read hangs", n)
			}
			wire.resource.Store(nil) // a read that hangs goes on hanging
		}()
		said.Lines()
		begin = time.Now()
		if _, ok := w.Mark(marking); !ok || time.Since(begin) > silentTimeout+time.Second {
			t.Errorf("marked %t after %s", ok, time.Since(begin))
		}
		if n := hangsSaid(&said); n != 0 {
			t.Errorf("%d lines more say so", n)
		}
		if n := len(posted); n != 1 || <-posted != "machine.KindListed" {
			t.Errorf("%d posted, want that volumes are listed after all", n)
		}
	})
}

// A list that a new leader asked for is not made any more once its watch has come as far,
// as it may between the request and the end of the watch. One that an audit asked for is.
func TestNoListAfterReach(t *testing.T) {
	for audit, listed := range map[bool]bool{false: false, true: true} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore("pods", nil, nil, nil)
			s.logger = klog.Background()
			s.complete()
			s.markPosted("5")
			done := make(chan struct{})
			go func() { defer close(done); s.reach(t.Context(), &state{version: "9"}) }()
			time.Sleep((relistAfter + 1) * reopenAfter) // by now it wants a list
			if audit {
				s.reopen(t.Context(), true)
			}
			o := metav1.ListOptions{ResourceVersion: "5"}
			if s.prepare(&o) {
				t.Error("a watch that stays behind is resumed")
			}
			s.markPosted("9")
			<-done
			o.ResourceVersion = "9"
			if got := !s.prepare(&o); got != listed {
				t.Errorf("listed anew: %t; an audit asked for it: %t", got, audit)
			}
		})
	}
}

// hangsSaid counts the lines that say that a read hangs, and since when.
func hangsSaid(s *logstest.Sink) (n int) {
	for _, l := range s.Lines() {
		if l.Message == "Not scheduling until the writes of the former leader can be read" && slices.Contains(l.Keys, "since") {
			n++
		}
	}
	return n
}

// A kind whose watch stands still and whose lists fail, or hang, after the mark was read
// is given up as well, if only some plugins read it.
func TestReachOfAKindThatCannotBeListed(t *testing.T) {
	volumes, pods := "persistentvolumes", "pods"
	for hang, limit := range map[bool]time.Duration{false: failingTimeout + 2*time.Second, true: silentTimeout + 2*time.Second} {
		wire := &unlistable{hang: hang}
		unlist(t, wire, func(t *testing.T, ctx context.Context, w *Watcher, posted chan string) {
			wire.server.Lag = func(_, _ string, c *apiserver.Change) time.Time { return c.At.Add(time.Hour) }
			_ = wire.server.Create(&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}})
			m, _ := w.Mark(ctx)
			wire.resource.Store(&volumes)
			reaching, end := context.WithTimeout(ctx, time.Hour)
			defer end()
			begin := time.Now()
			if !w.Reach(reaching, m) || time.Since(begin) > limit {
				t.Errorf("hang %t: reached after %s, want %s", hang, time.Since(begin), limit)
			}
			if len(posted) == 0 || <-posted != "machine.KindUnlisted" {
				t.Errorf("hang %t: volumes do not count as unlisted", hang)
			}

			_ = wire.server.Create(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}})
			m, _ = w.Mark(ctx)
			wire.resource.Store(&pods)
			reaching, end = context.WithTimeout(ctx, limit)
			defer end()
			go func() {
				time.Sleep(limit - time.Second)
				if unreadable := w.Unreadable(); len(unreadable) != 1 || unreadable[0].Resource != "pods" {
					t.Errorf("hang %t: unreadable: %v", hang, unreadable)
				}
			}()
			if w.Reach(reaching, m) {
				t.Errorf("hang %t: reached what no watch and no list shows", hang)
			}
		})
	}
}

// A failure from before that has not come again gives nothing up: client-go tries again
// after up to half a minute.
func TestReachAfterAnOutage(t *testing.T) {
	wire := &unlistable{}
	unlist(t, wire, func(t *testing.T, ctx context.Context, w *Watcher, posted chan string) {
		s := w.stores[len(w.stores)-1]
		s.reopen(ctx, true)
		volumes := "persistentvolumes"
		wire.resource.Store(&volumes)
		time.Sleep(2 * failingTimeout) // client-go waits for longer than failingTimeout by then
		for last := s.failed.Load(); s.failed.Load() == last; {
			time.Sleep(time.Millisecond)
		}
		wire.resource.Store(nil)
		_ = wire.server.Create(&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}})
		m, _ := w.Mark(ctx)
		begin := time.Now()
		if !w.Reach(ctx, m) || time.Since(begin) < failingTimeout {
			t.Errorf("reached after %s, want a wait for client-go", time.Since(begin))
		}
		if got := <-posted; got != "machine.ObjectSet" {
			t.Errorf("posted %s", got)
		}
	})
}

// A watch that lags is waited for, and named.
func TestReachWaitsForAWatchThatLags(t *testing.T) {
	for _, pods := range []int{3, 1000} {
		follows(t, pods, func(t *testing.T, s *apiserver.Server, w *Watcher, told func(string) string) {
			s.Lag = func(_, resource string, c *apiserver.Change) time.Time { return c.At.Add(8 * time.Second) }
			bound(t, s, "p1")
			time.AfterFunc(7*time.Second, func() {
				if behind := strings.Join(w.Behind(), " "); !strings.HasPrefix(behind, "pods: version ") {
					t.Errorf("%q is behind, want pods", behind)
				}
			})
			if took := reached(t, w); took < 8*time.Second || took > 12*time.Second || told("p1") != "n" {
				t.Errorf("%d pods: after %s p1 is on node %q", pods, took, told("p1"))
			}
		})
	}
}

// A watch that says nothing any more is opened anew.
func TestReachOpensAFrozenWatchAnew(t *testing.T) {
	follows(t, 1000, func(t *testing.T, s *apiserver.Server, w *Watcher, told func(string) string) {
		var asked atomic.Int32
		s.Lag = func(_, resource string, c *apiserver.Change) time.Time {
			if resource == "pods" && asked.Add(1) == 1 {
				return c.At.Add(time.Hour) // on the watch that is open
			}
			return c.At
		}
		bound(t, s, "p1")
		time.Sleep(time.Second)
		if took := reached(t, w); took > 3*time.Second || told("p1") != "n" {
			t.Errorf("after %s p1 is on node %q", took, told("p1"))
		}
	})
}

// Where no watch shows what is there, it is listed anew, from nothing.
func TestReachListsAnew(t *testing.T) {
	follows(t, 1000, func(t *testing.T, s *apiserver.Server, w *Watcher, told func(string) string) {
		s.Lag = func(_, resource string, c *apiserver.Change) time.Time { return c.At.Add(time.Hour) }
		bound(t, s, "p1")
		if took := reached(t, w); took > 20*time.Second || told("p1") != "n" {
			t.Errorf("after %s p1 is on node %q", took, told("p1"))
		}
	})
}

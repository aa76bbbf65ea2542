package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

type direct struct{ s *Server }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) { return Do(d.s, r), nil }

// each runs a test against a server in a bubble, once for each encoding.
func each(t *testing.T, test func(t *testing.T, s *Server, c kubernetes.Interface)) {
	for _, encoding := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		t.Run(encoding, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New()
				c, err := kubernetes.NewForConfig(&rest.Config{Host: "http://api", Transport: direct{s}, QPS: -1,
					ContentConfig: rest.ContentConfig{ContentType: encoding, AcceptContentTypes: encoding}})
				if err != nil {
					t.Fatal(err)
				}
				test(t, s, c)
			})
		})
	}
}

func pod(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: v1.PodSpec{SchedulerName: "default-scheduler"}}
}

func create(t *testing.T, s *Server, o Object) {
	t.Helper()
	if err := s.Create(o); err != nil {
		t.Fatal(err)
	}
}

func binding(name string, uid types.UID, node string) *v1.Binding {
	return &v1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid}, Target: v1.ObjectReference{Kind: "Node", Name: node}}
}

// An error that client-go hands on does not wait for the clock of the one before.
func TestErrorsOfAnotherClock(t *testing.T) {
	utilruntime.HandleErrorWithContext(t.Context(), nil, "by the clock of the machine")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		utilruntime.HandleErrorWithContext(t.Context(), nil, "by the bubble's")
		if waited := time.Since(began); waited != 0 {
			t.Errorf("it waited %v", waited)
		}
	})
}

// A pod is bound once, by its UID, not with a gate and not while it is deleted.
func TestBinding(t *testing.T) {
	each(t, func(t *testing.T, s *Server, c kubernetes.Interface) {
		create(t, s, pod("p"))
		gated := pod("gated")
		gated.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "gate"}}
		create(t, s, gated)
		uid := s.Get("pods", "ns", "p").GetUID()
		bind := func(name string, uid types.UID) error {
			return c.CoreV1().Pods("ns").Bind(t.Context(), binding(name, uid, "n"), metav1.CreateOptions{})
		}
		if err := bind("p", "other"); !apierrors.IsConflict(err) {
			t.Errorf("another UID: %v", err)
		}
		if err := bind("gated", ""); !apierrors.IsConflict(err) {
			t.Errorf("a gate: %v", err)
		}
		if err := bind("nobody", ""); !apierrors.IsNotFound(err) {
			t.Errorf("no pod: %v", err)
		}
		if err := bind("p", uid); err != nil {
			t.Fatal(err)
		}
		if err := bind("p", uid); !apierrors.IsConflict(err) {
			t.Errorf("twice: %v", err)
		}
		p, err := c.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{})
		if err != nil || p.Spec.NodeName != "n" || len(p.Status.Conditions) != 1 || p.Status.Conditions[0].Status != v1.ConditionTrue {
			t.Errorf("bound: %+v, %v", p, err)
		}
	})
}

// A patch of the status changes nothing else, and not the pod of another UID.
func TestStatusPatch(t *testing.T) {
	each(t, func(t *testing.T, s *Server, c kubernetes.Interface) {
		create(t, s, pod("p"))
		patch := func(body string) (*v1.Pod, error) {
			return c.CoreV1().Pods("ns").Patch(t.Context(), "p", types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, "status")
		}
		if _, err := patch(`{"metadata":{"uid":"other"},"status":{"nominatedNodeName":"n"}}`); !apierrors.IsInvalid(err) {
			t.Errorf("another UID: %v", err)
		}
		p, err := patch(`{"spec":{"nodeName":"x"},"status":{"nominatedNodeName":"n","conditions":[{"type":"PodScheduled","status":"False"}]}}`)
		if err != nil || p.Status.NominatedNodeName != "n" || p.Spec.NodeName != "" {
			t.Errorf("%+v, %v", p, err)
		}
		p, err = patch(`{"status":{"nominatedNodeName":null,"conditions":[{"type":"PodScheduled","status":"False","reason":"R"}]}}`)
		if err != nil || p.Status.NominatedNodeName != "" || len(p.Status.Conditions) != 1 || p.Status.Conditions[0].Reason != "R" {
			t.Errorf("%+v, %v", p, err)
		}
		before := s.Revision()
		if _, err := patch(`{"status":{"nominatedNodeName":null}}`); err != nil || s.Revision() != before {
			t.Errorf("a patch that changes nothing is a change: %v", err)
		}
	})
}

// A deletion is of one UID; a bound pod is marked and ends later.
func TestDeletion(t *testing.T) {
	each(t, func(t *testing.T, s *Server, c kubernetes.Interface) {
		create(t, s, pod("p"))
		other := types.UID("other")
		if err := c.CoreV1().Pods("ns").Delete(t.Context(), "p", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}); !apierrors.IsConflict(err) {
			t.Errorf("another UID: %v", err)
		}
		if err := s.Update("pods", "ns", "p", func(o Object) { o.(*v1.Pod).Spec.NodeName = "n" }); err != nil {
			t.Fatal(err)
		}
		if err := c.CoreV1().Pods("ns").Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if p := s.Get("pods", "ns", "p"); p == nil || p.GetDeletionTimestamp() == nil {
			t.Errorf("a bound pod is gone at once, or not marked: %+v", p)
		}
	})
}

// A page goes on in the state that the first one showed, until that is compacted.
func TestPages(t *testing.T) {
	each(t, func(t *testing.T, s *Server, c kubernetes.Interface) {
		for i := range 5 {
			create(t, s, pod(fmt.Sprint("p", i)))
		}
		var names []string
		options := metav1.ListOptions{Limit: 2}
		for {
			list, err := c.CoreV1().Pods("").List(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			for i := range list.Items {
				names = append(names, list.Items[i].Name)
			}
			if options.Continue = list.Continue; list.Continue == "" {
				break
			}
			s.Delete("pods", "ns", "p3")
		}
		if want := []string{"p0", "p1", "p2", "p3", "p4"}; !slices.Equal(names, want) {
			t.Errorf("%v, want %v", names, want)
		}
		list, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		create(t, s, pod("later"))
		s.Compact()
		if _, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 2, Continue: list.Continue}); !apierrors.IsResourceExpired(err) {
			t.Errorf("a page of a state that is compacted: %v", err)
		}
		if _, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{ResourceVersion: "1000000"}); !apierrors.IsTimeout(err) {
			t.Errorf("a version that is yet to come: %v", err)
		}
	})
}

// next is the next event of a watch, in short.
func next(w watch.Interface) string {
	e, open := <-w.ResultChan()
	if !open {
		return "end"
	}
	switch o := e.Object.(type) {
	case Object:
		return fmt.Sprint(e.Type, " ", o.GetName())
	case *metav1.Status:
		return fmt.Sprint(e.Type, " ", o.Code)
	}
	return "?"
}

// A watch shows what comes after its version, as its selection sees it, in the
// order of the changes and not before its lag is over; a bookmark when idle.
func TestWatch(t *testing.T) {
	each(t, func(t *testing.T, s *Server, c kubernetes.Interface) {
		s.Lag = func(by, resource string, c *Change) time.Time { return c.At.Add(2 * time.Second) }
		start := fmt.Sprint(s.Revision())
		ctx, stop := context.WithCancel(t.Context())
		w, err := c.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{ResourceVersion: start, FieldSelector: "spec.nodeName=", AllowWatchBookmarks: true})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		create(t, s, pod("p"))
		_ = s.Update("pods", "ns", "p", func(o Object) { o.SetLabels(map[string]string{"a": "b"}) })
		_ = s.Update("pods", "ns", "p", func(o Object) { o.(*v1.Pod).Spec.NodeName = "n" })
		for _, want := range []string{"ADDED p", "MODIFIED p", "DELETED p"} {
			if got := next(w); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		if since := time.Since(begin); since != 2*time.Second {
			t.Errorf("shown after %s", since)
		}
		if got := next(w); got != "BOOKMARK " {
			t.Errorf("idle: %s", got)
		}
		stop()
		if got := next(w); got != "end" {
			t.Errorf("stopped: %s", got)
		}
		s.Compact()
		if w, err = c.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: start}); err != nil {
			t.Fatal(err)
		}
		if got := next(w); got != "ERROR 410" {
			t.Errorf("compacted: %s", got)
		}
		w.Stop()
	})
}

// A watch that times out gets a bookmark 2 s before, of all that was shown.
func TestLastBookmark(t *testing.T) {
	each(t, func(t *testing.T, s *Server, c kubernetes.Interface) {
		s.Lag = func(by, resource string, c *Change) time.Time { return c.At.Add(1500 * time.Millisecond) }
		seconds, begin := int64(5), time.Now()
		w, err := c.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: fmt.Sprint(s.Revision()), TimeoutSeconds: &seconds, AllowWatchBookmarks: true})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		create(t, s, pod("p"))
		for _, want := range []struct {
			event string
			at    time.Duration
		}{{"ADDED p", 3500 * time.Millisecond}, {"BOOKMARK ", 3500 * time.Millisecond}, {"end", 5 * time.Second}} {
			if got := next(w); got != want.event || time.Since(begin) != want.at {
				t.Errorf("%s after %s, want %s after %s", got, time.Since(begin), want.event, want.at)
			}
		}
	})
}

// A backup is what there was, with its versions; watches end.
func TestRestore(t *testing.T) {
	each(t, func(t *testing.T, s *Server, c kubernetes.Interface) {
		create(t, s, pod("old"))
		b := s.Backup()
		create(t, s, pod("new"))
		w, err := c.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: fmt.Sprint(s.Revision())})
		if err != nil {
			t.Fatal(err)
		}
		s.Restore(b, 0)
		if got := next(w); got != "end" {
			t.Errorf("the watch goes on: %s", got)
		}
		if s.Get("pods", "ns", "old") == nil || s.Get("pods", "ns", "new") != nil || fmt.Sprint(s.Revision()) != s.Get("pods", "ns", "old").GetResourceVersion() {
			t.Errorf("restored: %v at %d", s.List("pods"), s.Revision())
		}
	})
}

// A list that may be stale is.
func TestStaleList(t *testing.T) {
	each(t, func(t *testing.T, s *Server, c kubernetes.Interface) {
		create(t, s, pod("a"))
		create(t, s, pod("b"))
		s.Stale = func(by, resource string) int { return 1 }
		for version, want := range map[string]int{"0": 1, "": 2} {
			if list, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{ResourceVersion: version}); err != nil || len(list.Items) != want {
				t.Errorf("version %q: %d pods, %v", version, len(list.Items), err)
			}
		}
	})
}

// Client-go's informers follow the server, also over a compaction and a restored
// backup.
func TestInformer(t *testing.T) {
	each(t, func(t *testing.T, s *Server, c kubernetes.Interface) {
		create(t, s, pod("a"))
		b := s.Backup()
		lw := cache.NewListWatchFromClient(c.CoreV1().RESTClient(), "pods", "", fields.Everything())
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			cache.NewReflector(lw, &v1.Pod{}, store, 0).RunWithContext(ctx)
		}()
		sees := func(want ...string) {
			t.Helper()
			time.Sleep(3 * time.Minute)
			keys := store.ListKeys()
			slices.Sort(keys)
			if !slices.Equal(keys, want) {
				t.Errorf("the informer sees %v, want %v", keys, want)
			}
		}
		sees("ns/a")
		create(t, s, pod("b"))
		s.Compact()
		create(t, s, pod("c"))
		sees("ns/a", "ns/b", "ns/c")
		s.Restore(b, 1000)
		sees("ns/a")
		stop()
		<-done
	})
}

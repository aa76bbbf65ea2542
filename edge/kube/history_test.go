package kube

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
)

func podStore(post func(machine.Event)) *store {
	s := &Watcher{logger: klog.Background()}
	return newStore("pods", post, s.guarded(entries(s.podSet), (&Watcher{}).insteadOfPod), func(o owner) machine.Event {
		return machine.PodGone{UID: o.uid, Namespace: o.Namespace, Name: o.Name}
	})
}

// A list that shows older states than were seen tells of all that it holds,
// also of what has not changed: the machine may know better from elsewhere.
func TestListOfAnOlderState(t *testing.T) {
	for name, tt := range map[string]struct {
		list    []any
		version string
		want    []string
	}{
		"it is older": {[]any{versioned("a", "1", "10"), versioned("b", "2", "20")}, "25", []string{"machine.Rewound", "set ns/a 1", "set ns/b 2"}},
		"a pod is older, the list is not, as versions were raised after the restore": {
			[]any{versioned("a", "1", "10"), versioned("b", "2", "15")}, "1000", []string{"machine.Rewound", "set ns/a 1", "set ns/b 2"}},
		"another pod of that name is older": {[]any{versioned("a", "1", "10"), versioned("b", "9", "15")}, "31", []string{"gone ns/b 2", "set ns/b 9"}},
		"nothing is older":                  {[]any{versioned("a", "1", "10"), versioned("b", "2", "31")}, "31", []string{"set ns/b 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			m := podStore(func(e machine.Event) { got = append(got, describe(e)) })
			_ = m.Replace([]any{versioned("a", "1", "10"), versioned("b", "2", "20")}, "30")
			got = nil
			if err := m.Replace(tt.list, tt.version); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, tt.want) || (m.rewinds.Load() > 0) != (tt.want[0] == "machine.Rewound") {
				t.Errorf("got %q, want %q; %d rewinds", got, tt.want, m.rewinds.Load())
			}
			got = nil
			if _ = m.Replace([]any{versioned("a", "1", "10")}, tt.version); slices.Contains(got, "machine.Rewound") {
				t.Errorf("the next list is taken for older: %q", got)
			}
		})
	}
}

// etcd is restored while a watch is open. When it ends and is resumed nobody
// would hear of anything: the version that it is to go on from is yet to come.
func TestResumeAfterRestore(t *testing.T) {
	restored := make(chan struct{})
	list := func(version string, pod *v1.Pod) v1.PodList {
		pod.ResourceVersion = version
		return v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
			ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: []v1.Pod{*pod}}
	}
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
		q := r.URL.Query()
		gone := false
		select {
		case <-restored:
			gone = true
		default:
		}
		switch {
		case q.Has("sendInitialEvents"):
			answer(w, 422, nil)
		case q.Has("watch") && gone:
			<-r.Context().Done()
		case q.Has("watch"): // one event, then it ends
			bound := apiPod("p", "n")
			bound.ResourceVersion = "100"
			event, _ := json.Marshal(map[string]any{"type": "MODIFIED", "object": bound})
			w.Header().Set("Content-Type", "application/json")
			close(restored)
			_, _ = w.Write(event)
		case !gone:
			answer(w, 200, list("90", apiPod("p", "")))
		case q.Get("resourceVersion") == "100":
			answer(w, 504, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
				Code: 504, Reason: metav1.StatusReasonTimeout, Message: "Too large resource version: 100, current: 95",
				Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}}})
		default:
			answer(w, 200, list("95", apiPod("p", "")))
		}
	})
	clients, err := NewClients(s.config(), always)
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan string, 10)
	m := podStore(func(e machine.Event) {
		if set, ok := e.(machine.PodSet); ok {
			events <- "set on " + set.Pod.NodeName
			return
		}
		events <- describe(e)
	})
	m.reflect(clients.Watch, &v1.Pod{}, "", klog.Background())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); m.reflector.RunWithContext(ctx) }()
	for _, want := range []string{"set on ", "set on n", "machine.Rewound", "set on "} {
		if got := <-events; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	cancel()
	<-done
	for _, c := range []rest.Interface{clients.Watch, clients.Policy, clients.Apps} {
		c.(*rest.RESTClient).Client.CloseIdleConnections()
	}
}

// The read before a watch that is resumed is given up where nobody answers it.
func TestResumeWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := (&history{}).checked(&cache.ListWatch{ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}})
		start := time.Now()
		if _, err := lw.WatchFuncWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "7"}); err != errNoAnswer || time.Since(start) > 2*time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

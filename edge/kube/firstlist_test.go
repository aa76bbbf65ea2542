package kube

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/decode"
)

// podList is a list of pods in protobuf.
func podList(t *testing.T, version string, pods ...*v1.Pod) []byte {
	t.Helper()
	list := &v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for _, p := range pods {
		list.Items = append(list.Items, *p)
	}
	var b bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(list, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// watchesPods runs a watcher of pods over a server that answers in protobuf, and returns
// the store and its events. All that is no request for pods gets an empty list. A first
// list that stands still for the time is given up.
func watchesPods(t *testing.T, stall time.Duration, answers http.HandlerFunc) (*store, <-chan string) {
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		answers(w, r)
	})
	config := s.config()
	config.ContentType = runtime.ContentTypeProtobuf
	clients, err := NewClients(config, always)
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan string, 100)
	w := NewWatcher(clients, nil, func(e machine.Event) { events <- describe(e) }, klog.Background())
	pods := w.stores[slices.IndexFunc(w.stores, func(s *store) bool { return s.name == "pods" })]
	pods.stall = stall
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); pods.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		clients.Watch.(*rest.RESTClient).Client.CloseIdleConnections()
	})
	return pods, events
}

func flush(w http.ResponseWriter, b []byte) {
	_, _ = w.Write(b)
	_ = http.NewResponseController(w).Flush()
}

func expectEvents(t *testing.T, events <-chan string, want ...string) {
	t.Helper()
	for _, e := range want {
		if got := <-events; got != e {
			t.Errorf("got %q, want %q", got, e)
		}
	}
}

// The objects of the first list are told while the list still comes. It counts as
// listed at its end, and the watch follows at its version.
func TestFirstListIsToldAsItComes(t *testing.T) {
	list := podList(t, "7", versioned("a", "1", "5"), versioned("b", "2", "6"))
	half := bytes.LastIndex(list, []byte("\x01b")) // in the middle of the second pod
	told, watched := make(chan struct{}), make(chan string, 1)
	pods, events := watchesPods(t, silentTimeout, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		switch {
		case q.Has("sendInitialEvents"):
			t.Error("the list was asked for as a watch")
		case q.Has("watch"):
			watched <- q.Get("resourceVersion")
			flush(w, nil)
			<-r.Context().Done()
		case q.Get("limit") == "": // else the read before a watch that is resumed
			if q.Get("fieldSelector") != decode.Unfinished || q.Get("resourceVersion") != "" {
				t.Errorf("%q", r.URL.RawQuery)
			}
			flush(w, list[:half])
			<-told
			flush(w, list[half:])
		}
	})
	expectEvents(t, events, "set ns/a 1")
	if pods.listed() {
		t.Error("half a list counts as a list")
	}
	close(told)
	expectEvents(t, events, "set ns/b 2")
	<-pods.synced
	pods.await(t.Context(), &state{version: "7"}, time.Minute)
	if at := <-watched; at != "7" || pods.shown != "7" || len(pods.seen) != 2 {
		t.Errorf("watched from %q, shown %q, %d pods", at, pods.shown, len(pods.seen))
	}
}

// A first list that breaks off is left to the reflector: what it told that is gone by
// then is taken back. It is the same where the list is refused, or is not in protobuf.
func TestFirstListThatFails(t *testing.T) {
	list := podList(t, "7", versioned("a", "1", "5"), versioned("b", "2", "6"))
	half := bytes.LastIndex(list, []byte("\x01b"))
	for name, first := range map[string]func(w http.ResponseWriter, r *http.Request){
		"breaks off":   func(w http.ResponseWriter, _ *http.Request) { flush(w, list[:half]); panic(http.ErrAbortHandler) },
		"stands still": func(w http.ResponseWriter, r *http.Request) { flush(w, nil); <-r.Context().Done() },
		"refused":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"no protobuf":  func(w http.ResponseWriter, _ *http.Request) { flush(w, []byte(`{"kind":"PodList"}`)) },
	} {
		t.Run(name, func(t *testing.T) {
			stall, left := silentTimeout, atomic.Bool{} // left to the reflector, which asks for a watch first
			if name == "stands still" {
				stall = time.Millisecond
			}
			_, events := watchesPods(t, stall, func(w http.ResponseWriter, r *http.Request) {
				q := r.URL.Query()
				switch {
				case q.Has("sendInitialEvents"):
					left.Store(true)
					w.WriteHeader(422)
				case q.Has("watch"):
					flush(w, nil)
					<-r.Context().Done()
				case !left.Load():
					first(w, r)
				case q.Get("resourceVersion") == "0":
					t.Error("the list may be older than what was told")
				default:
					flush(w, podList(t, "9", versioned("b", "2", "6"), versioned("c", "3", "8")))
				}
			})
			if name == "breaks off" {
				expectEvents(t, events, "set ns/a 1", "gone ns/a 1")
			}
			expectEvents(t, events, "set ns/b 2", "set ns/c 3")
		})
	}
}

// Where the reflector does not come to know that the first list is over, as its watch was
// stopped, the next list is one like any other: what it does not hold is gone.
func TestFirstListThatIsOverUnseen(t *testing.T) {
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		if !r.URL.Query().Has("watch") {
			flush(w, podList(t, "7", versioned("a", "1", "5")))
			return
		}
		flush(w, nil)
		<-r.Context().Done()
	})
	config := s.config()
	config.ContentType = runtime.ContentTypeProtobuf
	clients, err := NewClients(config, always)
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	pods := storeOf(NewWatcher(clients, nil, func(e machine.Event) { events = append(events, describe(e)) }, klog.Background()), "pods")
	lw := pods.listedAtFirst(clients.Watch, &v1.Pod{}, cache.NewListWatchFromClient(clients.Watch, "pods", "", fields.Everything()))
	w, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: new(true)})
	if err != nil {
		t.Fatal(err)
	}
	w.Stop()
	if err := pods.Replace(nil, "9"); err != nil || !slices.Equal(events, []string{"set ns/a 1", "gone ns/a 1"}) {
		t.Errorf("%q, %v", events, err)
	}
	clients.Watch.(*rest.RESTClient).Client.CloseIdleConnections()
}

// A list is read as it was written. What is cut off, wherever, is an error, and so is
// what is no list.
func TestReadList(t *testing.T) {
	want := []*v1.Pod{versioned("a", "1", "5"), versioned("b", "2", "6")}
	want[0].Labels = map[string]string{"app": strings.Repeat("x", 300)}
	read := func(b []byte) (names []string, version string, err error) {
		version, err = readList(bytes.NewReader(b), func(raw []byte) error {
			var p v1.Pod
			if err := p.Unmarshal(raw); err != nil {
				return err
			}
			names = append(names, p.Name+p.Labels["app"])
			return nil
		})
		return names, version, err
	}
	list := podList(t, "7", want...)
	names, version, err := read(list)
	if err != nil || version != "7" || len(names) != 2 || names[0] != "a"+want[0].Labels["app"] || names[1] != "b" {
		t.Fatalf("%q, version %q, %v", names, version, err)
	}
	whole := bytes.LastIndexByte(list, 0x1a) // the content's encoding and type, empty, come after the list
	for n := range whole {
		if _, _, err := read(list[:n]); err == nil || err == io.EOF {
			t.Fatalf("%d of %d bytes: %v", n, len(list), err)
		}
	}
	apart := &v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "b"}}
	var part bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(apart, &part); err != nil {
		t.Fatal(err)
	}
	for _, b := range []string{"", "{}", part.String(), "k8s\x00\x12\x00", "k8s\x00\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "k8s\x00\x12\x06\x12\xff\xff\xff\xff\x0f", "k8s\x00\x17"} {
		if _, _, err := read([]byte(b)); err == nil {
			t.Errorf("%q is a list", b)
		}
	}
}

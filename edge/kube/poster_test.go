package kube

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/berth-scheduler/berth/core/machine"
)

// What the API server reads is what was meant, in both encodings, and below a
// path that the host may have.
func TestPostedObjectsAreRead(t *testing.T) {
	type sent struct{ path, contentType, body string }
	for _, contentType := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		for _, prefix := range []string{"", "/proxy/"} {
			posted := make(chan sent, 1)
			s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
				posted <- sent{r.URL.Path, r.Header.Get("Content-Type"), body}
				answer(w, 201, nil)
			})
			config := s.config()
			config.ContentType, config.Host = contentType, s.URL+prefix
			h, outcomes := executorOn(t, config, always)
			read := func(path string) runtime.Object {
				t.Helper()
				got := <-posted
				if want := "/" + strings.TrimPrefix(prefix, "/") + path; got.path != want || got.contentType != contentType {
					t.Errorf("posted to %s as %s, want %s as %s", got.path, got.contentType, want, contentType)
				}
				object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(got.body), nil, nil)
				if err != nil {
					t.Fatalf("%s: %v", got.path, err)
				}
				return object
			}
			h.Do(machine.Bind{Pod: testPod("p"), Node: "node"})
			if b := read("api/v1/namespaces/ns/pods/p/binding").(*v1.Binding); b.Name != "p" || b.UID != "uid-1" || b.Target.Kind != "Node" || b.Target.Name != "node" {
				t.Errorf("the binding reads %+v", b)
			}
			<-outcomes
			h.Do(machine.PublishEvent{Pod: testPod("p"), Reason: "Scheduled", Action: "Binding"})
			e := read("apis/events.k8s.io/v1/namespaces/ns/events").(*eventsv1.Event)
			if e.Regarding.Name != "p" || e.Reason != "Scheduled" || e.ReportingController != "default-scheduler" || time.Since(e.EventTime.Time) > time.Hour {
				t.Errorf("the event reads %+v", e)
			}
		}
	}
}

// A server that is too busy for a Status says in a header when to come back.
func TestRefusalsWithoutStatus(t *testing.T) {
	for _, tt := range []struct {
		code  int
		body  string
		after int
	}{
		{429, "Too many requests, please try again later.", 3},
		{502, "<html>", 0},
		{500, string(bytes.Repeat([]byte{0xff}, refusalLimit+1)), 0},
	} {
		s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(tt.code)
			_, _ = w.Write([]byte(tt.body))
		})
		p, err := newPoster(separate(throttled(s.config()), false, nil), "/api", v1.SchemeGroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		err = p.post(t.Context(), "x", &v1.Binding{})
		status, ok := err.(apierrors.APIStatus)
		if !ok || int(status.Status().Code) != tt.code {
			t.Errorf("%d: error %v", tt.code, err)
		}
		if delay, busy := turnedAway(err); busy != (tt.after > 0) || delay != time.Duration(tt.after)*time.Second {
			t.Errorf("%d: come back after %s: %t", tt.code, delay, busy)
		}
	}
}

// renewed is a transport with a token for requests that have none yet, which it
// renews after a 401, as those of client-go are whose tokens expire.
type renewed struct {
	http.RoundTripper
	mu    sync.Mutex
	token string
}

func (t *renewed) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") == "" {
		t.mu.Lock()
		r.Header.Set("Authorization", t.token)
		t.mu.Unlock()
	}
	response, err := t.RoundTripper.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusUnauthorized {
		t.mu.Lock()
		t.token = "second"
		t.mu.Unlock()
	}
	return response, err
}

func (t *renewed) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// A token belongs to one request: many at a time get one each, and once it has
// expired the next request has another.
func TestTokensAreRenewed(t *testing.T) {
	const requests = 32
	var valid atomic.Value
	valid.Store("first")
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
		code := http.StatusUnauthorized
		if r.Header.Get("Authorization") == valid.Load() {
			code = http.StatusCreated
		}
		answer(w, code, nil)
	})
	config := s.config()
	config.Wrap(func(base http.RoundTripper) http.RoundTripper { return &renewed{RoundTripper: base, token: "first"} })
	h, outcomes := executorOn(t, config, always)
	bind := func() (refused int) {
		for range requests {
			h.Do(machine.Bind{Pod: testPod("p"), Node: "node"})
		}
		for range requests {
			if (<-outcomes).(machine.BindReply).Result != machine.BindDone {
				refused++
			}
		}
		return refused
	}
	if n := bind(); n != 0 {
		t.Errorf("%d of %d bindings refused with the first token", n, requests)
	}
	valid.Store("second")
	if n := bind(); n == 0 {
		t.Error("the first token has not expired")
	}
	if n := bind(); n != 0 {
		t.Errorf("%d of %d bindings refused after the first token expired", n, requests)
	}
}

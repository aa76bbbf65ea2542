package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// lists answers each list with no objects, except for the resources that code has a
// status for: 0 is none, and no answer.
func lists(t *testing.T, code func(resource string) int) *wire {
	return newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
		q := r.URL.Query()
		switch status := code(path.Base(r.URL.Path)); {
		case q.Has("sendInitialEvents"):
			answer(w, 422, nil)
		case status == 0 || q.Has("watch") && status == 200:
			<-r.Context().Done()
		case status != 200:
			answer(w, status, nil)
		default:
			answer(w, 200, noObjects)
		}
	})
}

var noObjects = v1.List{TypeMeta: metav1.TypeMeta{Kind: "List", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"}}

func failure(code int) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: reasons[code], Code: int32(code)}}
}

// watched runs a source until the test ends. It does not wait for lists that
// fail, and waits as long as silent says for those that are not answered.
func watched(t *testing.T, s *wire, silent time.Duration, kinds ...object.Kind) (*Watcher, chan string) {
	clients, err := NewClients(s.config(), always)
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan string, 100)
	source := NewWatcher(clients, kinds, func(e machine.Event) {
		switch e := e.(type) {
		case machine.KindUnlisted:
			events <- fmt.Sprintf("unlisted %s: %v", e.Kind, e.Err)
		case machine.KindListed:
			events <- "listed " + e.Kind.String()
		default:
			events <- describe(e)
		}
	}, klog.Background())
	source.failing, source.silent = 0, silent
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); source.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		for _, c := range []rest.Interface{clients.Watch, clients.Policy, clients.Apps, clients.Storage, clients.Devices} {
			c.(*rest.RESTClient).Client.CloseIdleConnections()
		}
	})
	return source, events
}

// A kind that only some plugins read and that cannot be listed is posted as
// such, and holds nothing else up; when it can be listed after all, that is
// posted, too.
func TestKindThatCannotBeListed(t *testing.T) {
	var claims atomic.Int64
	claims.Store(403)
	s := lists(t, func(resource string) int {
		if resource == "resourceclaims" {
			return int(claims.Load())
		}
		return 200
	})
	source, events := watched(t, s, time.Hour, object.PersistentVolumes, object.ResourceClaims)
	if !source.WaitForSync(t.Context()) {
		t.Fatal("not synced")
	}
	if got := <-events; !strings.HasPrefix(got, "unlisted ResourceClaim: ") {
		t.Errorf("posted %q", got)
	}
	missing := source.Missing()
	if len(missing) != 1 || missing[0].Required || missing[0].String() != "resourceclaims.resource.k8s.io: forbidden" {
		t.Errorf("missing %v", missing)
	}
	claims.Store(200)
	if got := <-events; got != "listed ResourceClaim" {
		t.Errorf("posted %q", got)
	}
	if missing := source.Missing(); len(missing) != 0 {
		t.Errorf("missing %v at last", missing)
	}
}

// An API that claims a known group and answers with something else, as an aggregated API or
// a CRD may, costs its own kind and no other. It counts once it can be read.
func TestKindOfAnotherShape(t *testing.T) {
	for kind, named := range map[object.Kind]string{object.ResourceClaims: "ResourceClaim", object.DeviceTaintRules: "DeviceTaintRule", object.PodGroups: "PodGroup"} {
		api := `,"apiVersion":"` + kind.GroupVersion().String() + `","metadata":{"name":"c","resourceVersion":"7"}`
		list := `{"kind":"` + named + `List"` + api + `,"items":`
		for _, body := range []string{
			list + `[{"metadata":{"name":"c"},"spec":"all"}]}`,
			list + `{"c":{}}}`,
			list + `[{"metadata":"c"}]}`,
			`{"kind":"WidgetList"` + api + `,"items":[{}]}`,
			`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"p"}}]}`,
			`{"kind":"` + named + `"` + api + `}`,
			"<html>", "", "null",
		} {
			var mended atomic.Bool
			s := newWire(t, func(w http.ResponseWriter, r *http.Request, _ string) {
				q := r.URL.Query()
				switch {
				case q.Has("sendInitialEvents"):
					answer(w, 422, nil)
				case path.Base(r.URL.Path) == kind.Resource() && !mended.Load():
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte(body))
				case q.Has("watch"):
					<-r.Context().Done()
				default:
					answer(w, 200, noObjects)
				}
			})
			source, events := watched(t, s, time.Hour, object.PersistentVolumes, kind)
			if !source.WaitForSync(t.Context()) {
				t.Fatal("not synced")
			}
			if got := <-events; !strings.HasPrefix(got, "unlisted "+named+": ") {
				t.Errorf("%s: posted %q", body, got)
			}
			if missing := source.Missing(); len(missing) != 1 || missing[0].Required || missing[0].String() != kind.Resource()+"."+kind.GroupVersion().Group+": cannot be listed" {
				t.Errorf("%s: missing %v", body, missing)
			}
			mended.Store(true)
			if got := <-events; got != "listed "+named {
				t.Errorf("%s: posted %q", body, got)
			}
		}
	}
}

// A kind that was listed and is not served any more, as after an upgrade of the API server
// that ends a version, is posted and named as one that cannot be listed, until it is served
// again. One whose list fails in another way stays known.
func TestKindThatIsServedNoMore(t *testing.T) {
	var claims atomic.Int64
	claims.Store(200)
	failed := make(chan struct{}, 100)
	s := lists(t, func(resource string) int {
		if resource != "resourceclaims" {
			return 200
		}
		if claims.Load() != 200 {
			failed <- struct{}{}
		}
		return int(claims.Load())
	})
	source, events := watched(t, s, time.Hour, object.ResourceClaims)
	if !source.WaitForSync(t.Context()) {
		t.Fatal("not synced")
	}
	claims.Store(503)
	s.CloseClientConnections()
	<-failed
	<-failed
	if missing := source.Missing(); len(missing) > 0 || len(events) > 0 {
		t.Errorf("missing %v, %d events after a failure that may pass", missing, len(events))
	}
	claims.Store(404)
	if got := <-events; !strings.HasPrefix(got, "unlisted ResourceClaim: ") {
		t.Errorf("posted %q", got)
	}
	if missing := source.Missing(); len(missing) != 1 || missing[0].String() != "resourceclaims.resource.k8s.io: not served" {
		t.Errorf("missing %v", missing)
	}
	for _, w := range source.Watches() {
		if w.Synced != (w.Resource != "resourceclaims.resource.k8s.io") {
			t.Errorf("%s: synced %t", w.Resource, w.Synced)
		}
	}
	claims.Store(200)
	if got := <-events; got != "listed ResourceClaim" {
		t.Errorf("posted %q", got)
	}
	if missing := source.Missing(); len(missing) > 0 {
		t.Errorf("missing %v at last", missing)
	}
}

// So does one about which the API server never answers.
func TestKindThatIsNeverAnswered(t *testing.T) {
	s := lists(t, func(resource string) int {
		if resource == "csinodes" {
			return 0
		}
		return 200
	})
	source, events := watched(t, s, 0, object.CSINodes)
	if !source.WaitForSync(t.Context()) {
		t.Fatal("not synced")
	}
	if got, want := <-events, "unlisted CSINode: "+errNoAnswer.Error(); got != want {
		t.Errorf("posted %q, want %q", got, want)
	}
}

// Without pods, nodes and what all decisions depend on nothing is synced, and
// what is missing has a name.
func TestRequiredKindThatCannotBeListed(t *testing.T) {
	s := lists(t, func(resource string) int {
		if resource == "namespaces" || resource == "resourceclaims" {
			return 403
		}
		return 200
	})
	source, events := watched(t, s, time.Hour, object.ResourceClaims)
	ctx, cancel := context.WithCancel(t.Context())
	synced := make(chan bool)
	go func() { synced <- source.WaitForSync(ctx) }()
	want := []string{"namespaces: forbidden", "resourceclaims.resource.k8s.io: forbidden"}
	for got := []string{}; !slices.Equal(got, want); {
		<-s.requests
		got = nil
		for _, m := range source.Missing() {
			got = append(got, m.String())
		}
		if ctx.Err() != nil {
			t.Fatalf("missing %q", got)
		}
	}
	cancel()
	if <-synced || len(events) > 0 {
		t.Error("synced without namespaces")
	}
}

// A resource that is missing is named with the reason in a few words.
func TestMissingIsNamed(t *testing.T) {
	for want, err := range map[string]error{
		"x: not listed yet":        nil,
		"x: cannot be listed":      errors.New("dial tcp 10.0.0.1:443: connect: connection refused"),
		"x: internal server error": failure(500),
		"x: not served":            failure(404),
		"x: service unavailable":   failure(503),
		"x: forbidden":             &apierrors.StatusError{ErrStatus: metav1.Status{Code: 403}},
	} {
		if got := (Missing{Resource: "x", Err: err}).String(); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

package lease

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	configv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is an HTTP server that keeps one lease: what is put last is read next.
type store struct {
	mu    sync.Mutex
	lease []byte
	puts  chan *coordinationv1.Lease
	notes chan string // of the events that were posted
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/events") {
		e := &v1.Event{}
		_ = json.NewDecoder(r.Body).Decode(e)
		s.notes <- e.InvolvedObject.Kind + " " + e.Namespace + "/" + e.InvolvedObject.Name + " " + e.Reason + ": " + e.Message + " (" + e.Source.Component + ")"
		_ = json.NewEncoder(w).Encode(e)
		return
	}
	if r.Method != http.MethodGet {
		s.lease, _ = io.ReadAll(r.Body)
		l := &coordinationv1.Lease{}
		_ = json.Unmarshal(s.lease, l)
		s.puts <- l
	} else if s.lease == nil {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: 404})
		return
	}
	_, _ = w.Write(s.lease)
}

// A lease is won, renewed while it is held, and released at the end.
func TestLeaseIsWonKeptAndReleased(t *testing.T) {
	s := &store{puts: make(chan *coordinationv1.Lease, 100), notes: make(chan string, 10)}
	server := httptest.NewServer(s)
	defer server.Close()
	duration := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	l, err := New(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}},
		configv1alpha1.LeaderElectionConfiguration{
			LeaseDuration: duration(15 * time.Second), RenewDeadline: duration(10 * time.Second), RetryPeriod: duration(2 * time.Second),
			ResourceLock: "leases", ResourceNamespace: "kube-system", ResourceName: "kube-scheduler",
		}, "host_1", "default-scheduler", nil)
	if err != nil {
		t.Fatal(err)
	}
	if l.Held() {
		t.Error("held before it was applied for")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.Run(ctx, func() bool { return true }) }()
	<-l.Won()
	if !l.Held() || l.Check(nil) != nil {
		t.Error("won, but not held")
	}
	first := <-s.puts
	if *first.Spec.HolderIdentity != "host_1" || *first.Spec.LeaseDurationSeconds != 15 {
		t.Errorf("lease %+v", first.Spec)
	}
	if got, want := <-s.notes, "Lease kube-system/kube-scheduler LeaderElection: host_1 became leader (default-scheduler)"; got != want {
		t.Errorf("event %q, want %q", got, want)
	}
	cancel()
	<-done
	if l.Held() {
		t.Error("held after it was given up")
	}
	last := first
	for len(s.puts) > 0 {
		last = <-s.puts
	}
	if holder := last.Spec.HolderIdentity; holder != nil && *holder != "" {
		t.Errorf("not released: %+v", last.Spec)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// No two identities of one host are equal.
func TestIdentitiesDiffer(t *testing.T) {
	a, err := Identity()
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := Identity(); a == b {
		t.Errorf("twice %s", a)
	}
}

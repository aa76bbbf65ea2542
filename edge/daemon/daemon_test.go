package daemon

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/kube"
	"github.com/berth-scheduler/berth/edge/loop"
)

// With delayCacheUntilActive a leader finds out only as such that it cannot read
// the cluster. It then leaves the lease to another, released, and says why.
func TestLeaderThatCannotReadTheCluster(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer s.Close()
	clients, err := kube.NewClients(&rest.Config{Host: s.URL, QPS: -1}, func() bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	d := &Daemon{watcher: kube.NewWatcher(clients, nil, func(machine.Event) {}, klog.Background()), leads: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); d.watcher.Run(ctx) }()
	defer func() { cancel(); <-done }()

	refused := func(m kube.Missing) bool { return m.Resource == "pods" && m.Err != nil }
	for !slices.ContainsFunc(d.watcher.Missing(), refused) {
		runtime.Gosched() // the first lists are under way
	}

	keep, leave := context.WithCancelCause(t.Context())
	look := make(chan time.Time)
	go d.leaveUnread(ctx, look, leave)
	looks := 0
	for keep.Err() == nil {
		select {
		case look <- time.Time{}:
			looks++
		case <-keep.Done():
		}
	}
	if why := context.Cause(keep).Error(); !strings.Contains(why, "pods: forbidden") || !d.over.Load() {
		t.Errorf("left because %s, lease released %t", why, d.over.Load())
	}
	if looks < int(unreadableLimit/time.Second) {
		t.Errorf("left after %d looks", looks)
	}
}

// A loop that is stuck leaves the lease, also where the line that says so is stuck, too,
// because nobody reads the log.
func TestStuckLogLeavesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := make(chan struct{})
		d := &Daemon{logger: funcr.New(func(string, string) { <-read }, funcr.Options{})}
		ctx, leave := context.WithCancelCause(t.Context())
		s := &loop.Stuck{Step: "ScheduleOne"}
		d.stuck(s, leave)
		if why := context.Cause(ctx); why != s {
			t.Errorf("left because of %v", why)
		}
		close(read)
	})
}

// One that does know it keeps the lease.
func TestLeaderThatReadsTheCluster(t *testing.T) {
	d := &Daemon{leads: make(chan struct{})}
	close(d.leads)
	keep, leave := context.WithCancelCause(t.Context())
	d.leaveUnread(t.Context(), nil, leave)
	if keep.Err() != nil || d.over.Load() {
		t.Errorf("left because %v", context.Cause(keep))
	}
}

package daemon_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	basemetrics "k8s.io/component-base/metrics"

	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/daemon"
	"github.com/berth-scheduler/berth/edge/logs/logstest"
	"github.com/berth-scheduler/berth/edge/loop"
	"github.com/berth-scheduler/berth/sim/apiserver"
)

// cluster is an API server in memory, and the way to it.
type cluster struct {
	*apiserver.Server
	cut atomic.Bool // nobody reaches it
}

func (c *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.cut.Load() {
		return nil, errors.New("no route")
	}
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	return apiserver.Do(c, r), nil
}

// client is who sends requests to the cluster.
type client struct {
	*cluster
	name string
}

func (c client) RoundTrip(r *http.Request) (*http.Response, error) {
	return c.cluster.RoundTrip(r.WithContext(apiserver.As(r.Context(), c.name)))
}

// daemonOf returns a daemon of the cluster that logs to the sink.
func daemonOf(t testing.TB, c *cluster, s *logstest.Sink, identity string, wrap ...func(loop.Machine) loop.Machine) *daemon.Daemon {
	t.Helper()
	o := optionsOf(t, c, s, identity)
	for _, w := range wrap {
		o.Wrap = w
	}
	d, err := daemon.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func optionsOf(t testing.TB, c *cluster, s *logstest.Sink, identity string) daemon.Options {
	t.Helper()
	cfg := config.Default()
	leads := true
	cfg.LeaderElection.LeaderElect = &leads
	profiles, err := profile.BuildAll(config.Profiles(cfg), plugins.Registry(features.Plugins(features.New())))
	if err != nil {
		t.Fatal(err)
	}
	return daemon.Options{
		Logger: s.Logger(), Config: cfg, Profiles: profiles, Identity: identity,
		API: &rest.Config{Host: "http://api", Transport: client{c, identity}, QPS: -1, ContentConfig: rest.ContentConfig{
			ContentType: cfg.ClientConnection.ContentType, AcceptContentTypes: cfg.ClientConnection.AcceptContentTypes}},
		MaxUnschedulable: queue.DefaultMaxUnschedulable, Register: basemetrics.NewKubeRegistry().MustRegister,
	}
}

// Who started the daemon is told when it knows the cluster, once.
func TestSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{Server: apiserver.New()}
		o, synced := optionsOf(t, c, &logstest.Sink{}, "me"), atomic.Int32{}
		o.Synced = func() { synced.Add(1) }
		d, err := daemon.New(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.Run(ctx, nil) }()
		time.Sleep(time.Minute)
		if n := synced.Load(); n != 1 {
			t.Errorf("told %d times", n)
		}
		stop()
		<-ended
	})
}

// What a daemon logs from its start to its end: as it is asked to stop, and as it
// loses its lease.
func TestRunLines(t *testing.T) {
	s := &logstest.Sink{Verbosity: 3}
	for _, lost := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := &cluster{Server: apiserver.New()}
			d := daemonOf(t, c, s, "me")
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- d.Run(ctx, nil) }()
			time.Sleep(10 * time.Second)
			if c.cut.Store(lost); !lost {
				stop()
			}
			if err := <-ended; (err != nil) != lost {
				t.Errorf("ended with %v", err)
			}
			stop()
		})
	}
	for _, row := range logstest.Missing("edge/daemon, TestRunLines", s.Lines()) {
		t.Errorf("never written: %s", row)
	}
}

package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/version"
	baseversion "k8s.io/component-base/version"

	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/daemon"
	"github.com/berth-scheduler/berth/edge/logs/logstest"
	"github.com/berth-scheduler/berth/edge/server"
	"github.com/berth-scheduler/berth/sim/apiserver"
)

// A process says who leads, what is in force since when, what was refused until something
// is taken over, and when each watch brought something. One that waits for the lease says
// so, too.
func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{Server: apiserver.New()}
		d, other := daemonOf(t, c, &logstest.Sink{}, "me"), daemonOf(t, c, &logstest.Sink{}, "other")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		run := func(d *daemon.Daemon) { go func() { ended <- d.Run(ctx, nil) }() }
		run(d)
		defer func() { stop(); <-ended; <-ended }()
		n := &v1.Node{Status: v1.NodeStatus{Allocatable: v1.ResourceList{"pods": resource.MustParse("10")}}}
		n.Name = "n"
		if err := c.Create(n); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		run(other)
		time.Sleep(10 * time.Second)
		ask := func(d *daemon.Daemon) (s api.Status) {
			w := httptest.NewRecorder()
			server.Handler(d.Endpoint()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, api.Prefix+"status", nil))
			if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || w.Code != http.StatusOK {
				t.Fatalf("%d %s: %v", w.Code, w.Body, err)
			}
			return s
		}
		s := ask(d)
		if !s.Leads || s.Leader != "me" || s.Identity != "me" || s.Lease != "kube-system/kube-scheduler" || !s.Synced || s.Nodes != 1 || s.Shadow != nil ||
			len(s.Configuration.Profiles) != 1 || s.Configuration.Profiles[0] != "default-scheduler" || s.Configuration.Refused != nil || !s.Configuration.Since.Equal(s.Started) {
			t.Errorf("%+v", s)
		}
		heard := 0
		for _, w := range s.Watches {
			if w.Synced && w.Heard != nil && !w.Heard.After(s.Time) {
				heard++
			}
		}
		if heard < 5 || heard != len(s.Watches) {
			t.Errorf("%d of %d watches are synced: %+v", heard, len(s.Watches), s.Watches)
		}
		if f := ask(other); f.Leads || f.Leader != "me" || f.Identity != "other" || !f.Synced {
			t.Errorf("who waits: %+v", f)
		}
		bad := daemon.Make(func() (*config.Config, []*profile.Profile, error) { return nil, nil, errors.New("half a file") })
		if err := d.Reload(ctx, bad); err == nil {
			t.Fatal("it is not refused")
		}
		if r := ask(d).Configuration.Refused; r == nil || r.Reason != "half a file" || r.Time.IsZero() {
			t.Errorf("refused: %+v", r)
		}
		if err := d.Reload(ctx, made(t, "podMaxBackoffSeconds: 12")); err != nil {
			t.Fatal(err)
		}
		if now := ask(d).Configuration; now.Refused != nil || !now.Since.After(s.Started) {
			t.Errorf("taken over: %+v", now)
		}
	})
}

// Status and /readyz say which version the API server has, and whether it is
// supported, and follow when the connections break off and another server answers.
func TestVersionOfTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var git atomic.Pointer[string]
		git.Store(new("v1.0.0"))
		c := &cluster{Server: apiserver.New()}
		c.Version = func() string { return *git.Load() }
		d := daemonOf(t, c, &logstest.Sink{}, "me")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.Run(ctx, nil) }()
		defer func() { stop(); <-ended }()
		h := server.Handler(d.Endpoint())
		get := func(path string) string {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			return w.Body.String()
		}
		for _, newer := range []int{0, 3, -1, 1} {
			version := version.MustParse(baseversion.DefaultKubeBinaryVersion).OffsetMinor(newer).String() + ".2"
			supported := newer <= 1
			git.Store(&version)
			time.Sleep(15 * time.Minute) // the longest time that a watch lasts
			var s api.Status
			if err := json.Unmarshal([]byte(get(api.Prefix+"status")), &s); err != nil || s.APIServer == nil || *s.APIServer != (api.APIServer{Version: version, Supported: supported}) {
				t.Errorf("%s: %v, status %+v", version, err, s.APIServer)
			}
			if body := get("/readyz/api-server"); strings.Contains(body, version+"; supported are ") == supported {
				t.Errorf("%s: /readyz/api-server says %q", version, body)
			}
			if body := get("/readyz?verbose"); strings.Contains(body, "the API server is of a version") == supported {
				t.Errorf("%s: /readyz says %q", version, body)
			}
		}
		// One that cannot be read is told, and stops nothing; the one before stays.
		for _, version := range []string{"master", baseversion.DefaultKubeBinaryVersion + ".2"} {
			git.Store(&version)
			unread := version == "master"
			time.Sleep(15 * time.Minute)
			if body := get("/readyz/api-server"); strings.Contains(body, `could not parse "master" as version`) != unread {
				t.Errorf("%s: /readyz/api-server says %q", version, body)
			}
			if body := get("/readyz?verbose"); strings.Contains(body, "the version of the API server cannot be read") != unread || !strings.Contains(body, "readyz check passed") {
				t.Errorf("%s: /readyz says %q", version, body)
			}
			var s api.Status
			if err := json.Unmarshal([]byte(get(api.Prefix+"status")), &s); err != nil || s.APIServer == nil || !s.APIServer.Supported {
				t.Errorf("%s: %v, status %+v", version, err, s.APIServer)
			}
		}
	})
}

package daemon_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/daemon"
	"github.com/berth-scheduler/berth/edge/logs/logstest"
	"github.com/berth-scheduler/berth/edge/server"
	"github.com/berth-scheduler/berth/sim/apiserver"
)

// made returns what makes a configuration of the text.
func made(t *testing.T, text string) daemon.Make {
	return func() (*config.Config, []*profile.Profile, error) {
		c, err := config.Decode([]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"+text), "file")
		if err != nil {
			t.Fatal(err)
		}
		profiles, err := profile.BuildAll(config.Profiles(c), plugins.Registry(features.Plugins(features.New())))
		return c, profiles, err
	}
}

// A running daemon takes over a configuration, or refuses it as a whole; what is in
// effect, and what came of the last try, can be seen.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := &cluster{Server: apiserver.New()}, &logstest.Sink{}
		d := daemonOf(t, c, s, "me")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.Run(ctx, nil) }()
		defer func() { stop(); <-ended }()
		endpoint := server.Handler(d.Endpoint())
		get := func(path string) string {
			w := httptest.NewRecorder()
			endpoint.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			return w.Body.String()
		}
		p := &v1.Pod{Spec: v1.PodSpec{SchedulerName: "default-scheduler", Containers: []v1.Container{{Name: "c"}}, NodeSelector: map[string]string{"a": "b"}}}
		p.Namespace, p.Name = "d", "p"
		n := &v1.Node{Status: v1.NodeStatus{Allocatable: v1.ResourceList{"pods": resource.MustParse("10")}}}
		n.Name = "n"
		for _, o := range []apiserver.Object{n, p} {
			if err := c.Create(o); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		bound := func() string { return c.Get("pods", "d", "p").(*v1.Pod).Spec.NodeName }
		if bound() != "" || strings.Contains(get("/readyz?verbose"), "configuration") {
			t.Fatalf("before: bound to %q, %s", bound(), get("/readyz?verbose"))
		}
		for _, refused := range []struct {
			make daemon.Make
			why  string
		}{
			{func() (*config.Config, []*profile.Profile, error) { return nil, nil, errors.New("half a file") }, "half a file"},
			{func() (*config.Config, []*profile.Profile, error) { panic("a plugin's factory") }, "a plugin's factory"},
			{made(t, "profiles: [{schedulerName: other}]"), "profiles: their schedulerName needs a restart"},
			{made(t, "leaderElection: {resourceName: other}\npodMaxBackoffSeconds: 11"), "a change of leaderElection needs a restart"},
		} {
			if err := d.Reload(ctx, refused.make); err == nil || !strings.Contains(err.Error(), refused.why) {
				t.Errorf("got %v, want %s", err, refused.why)
			}
			if why := get("/readyz/configuration"); !strings.Contains(why, "configuration refused at 2000-01-01T00:00:10Z, the previous one stays in effect: ") || !strings.Contains(why, refused.why) {
				t.Errorf("why: %s", why)
			}
			if status := get("/readyz?verbose"); !strings.HasSuffix(status, "\nconfiguration refused, the previous one stays in effect; see /readyz/configuration\n") || strings.Contains(status, refused.why) {
				t.Errorf("anybody is told: %s", status)
			}
		}
		if !strings.Contains(get("/configz"), `"podMaxBackoffSeconds":10,`) {
			t.Errorf("a refused configuration is shown: %s", get("/configz"))
		}
		if err := d.Reload(ctx, made(t, "podMaxBackoffSeconds: 12\nprofiles: [{plugins: {multiPoint: {disabled: [{name: NodeAffinity}]}}}]")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if bound() != "n" {
			t.Error("without NodeAffinity the pod fits, and is not bound")
		}
		if !strings.Contains(get("/configz"), `"podMaxBackoffSeconds":12,`) || !strings.Contains(get("/readyz/configuration"), "configuration reloaded at 2000-01-01T00:00:10Z") ||
			!strings.Contains(get("/readyz?verbose"), "configuration reloaded; see /readyz/configuration\n") {
			t.Errorf("after: %s, %s, %s", get("/configz"), get("/readyz/configuration"), get("/readyz?verbose"))
		}
		lines := s.Lines()
		if n := count(lines, "Failed to reload the configuration; the previous one stays in effect"); n != 4 || count(lines, "Reloaded the configuration") != 1 {
			t.Errorf("%d refusals are logged of 4; %v", n, lines)
		}
		if err := d.Inspect(ctx, func(m *machine.Machine) {
			if err := m.Verify(); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	})
}

func count(lines []logstest.Line, message string) (n int) {
	for _, l := range lines {
		if l.Message == message {
			n++
		}
	}
	return n
}

// Until the cluster is known the check of the handlers says so in kube-scheduler's words,
// and what is missing.
func TestNotSynced(t *testing.T) {
	d := daemonOf(t, &cluster{Server: apiserver.New()}, &logstest.Sink{}, "me")
	w := httptest.NewRecorder()
	server.Handler(d.Endpoint()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz/sched-handler-sync", nil))
	if w.Code != 500 || !strings.Contains(w.Body.String(), "handlers are not fully synchronized: ") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

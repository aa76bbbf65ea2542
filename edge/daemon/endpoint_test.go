package daemon_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/daemon"
	"github.com/berth-scheduler/berth/edge/logs/logstest"
	"github.com/berth-scheduler/berth/edge/server"
	"github.com/berth-scheduler/berth/sim/apiserver"
)

// harmless are the lines that anybody may read.
var harmless = regexp.MustCompile(`^(ok|\[\+\]\S+ ok|\[-\]\S+ failed: reason withheld|(healthz|livez|readyz) check (failed|passed)|` +
	`some kinds of objects cannot be listed; see /readyz/missing|configuration refused, the previous one stays in effect; see /readyz/configuration|` +
	`the API server is of a version that this build does not support; see /readyz/api-server|the version of the API server cannot be read; see /readyz/api-server|)$`)

// The paths that need no authorization give no reason, whatever is wrong: no path, value,
// object or error. Those below them, which need it, do.
func TestAnybodyIsToldNoReasons(t *testing.T) {
	d := daemonOf(t, &cluster{Server: apiserver.New()}, &logstest.Sink{}, "me")
	make := daemon.Make(func() (*config.Config, []*profile.Profile, error) {
		return nil, nil, errors.New("/etc/secret.yaml: profiles[0].schedulerName: bad")
	})
	if err := d.Reload(t.Context(), make); err == nil {
		t.Fatal("the configuration is not refused")
	}
	h := server.Handler(d.Endpoint())
	get := func(path string) string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Body.String()
	}
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/healthz?verbose", "/livez?verbose", "/readyz?verbose"} {
		for line := range strings.SplitSeq(get(path), "\n") {
			if !harmless.MatchString(line) {
				t.Errorf("%s tells anybody %q", path, line)
			}
		}
	}
	if body := get("/readyz"); !strings.Contains(body, "kinds of objects") || !strings.Contains(body, "configuration refused") {
		t.Errorf("/readyz: %s", body)
	}
	for path, want := range map[string]string{"missing": "pods: not listed yet\n", "configuration": "/etc/secret.yaml: profiles[0]", "sched-handler-sync": "pods: not listed yet"} {
		if body := get("/readyz/" + path); !strings.Contains(body, want) {
			t.Errorf("/readyz/%s: %s, want %q", path, body, want)
		}
	}
}

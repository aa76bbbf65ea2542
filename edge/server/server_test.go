package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/server/healthz"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/compatibility"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/edge/logs/logstest"
)

func configuration(profiling bool) *configv1.KubeSchedulerConfiguration {
	c := &configv1.KubeSchedulerConfiguration{Extenders: []configv1.Extender{{
		URLPrefix: "https://user:passw0rd@extender", TLSConfig: &configv1.ExtenderTLSConfig{KeyData: []byte("secret"), CAData: []byte("public")},
	}}}
	off := false
	c.EnableProfiling, c.EnableContentionProfiling = &profiling, &off
	return c
}

func flags() *cliflag.NamedFlagSets {
	sets := &cliflag.NamedFlagSets{}
	sets.FlagSet("leader election").Bool("leader-elect", true, "")
	return sets
}

func get(t *testing.T, h http.Handler, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	body, _ := io.ReadAll(w.Result().Body)
	return w.Result().StatusCode, string(body)
}

// Each path answers with what it is for, health follows the checks, and metrics are
// refreshed as they are read.
func TestPaths(t *testing.T) {
	var ready error = errors.New("not yet")
	alive := error(nil)
	refreshed, leads, missing := 0, true, "resourceclaims.resource.k8s.io: forbidden"
	h := Handler(Options{
		Readyz:    []healthz.HealthChecker{healthz.NamedCheck("sched-handler-sync", func(*http.Request) error { return ready })},
		Notices:   []Notice{{"missing", func() (string, string) { return "some kinds cannot be listed", missing }}, {"none", func() (string, string) { return "", "" }}},
		Livez:     []healthz.HealthChecker{healthz.NamedCheck("scheduling-loop", func(*http.Request) error { return alive })},
		Config:    func() *configv1.KubeSchedulerConfiguration { return configuration(true) },
		Refresh:   func() { refreshed++ },
		Resources: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "requests") }),
		Leads:     func() bool { return leads },
		Berth:     http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "at "+r.URL.Path) }),
		Flags:     flags(),
		Status:    compatibility.NewEffectiveVersionFromString("1.36", "", ""),
	})
	tests := []struct {
		path, contains string
		code           int
	}{
		{"/healthz", "ok", 200},
		{"/livez", "ok", 200},
		{"/readyz", "[-]sched-handler-sync failed", 500},
		{"/readyz", "\nsome kinds cannot be listed; see /readyz/missing\n", 500},
		{"/readyz/missing", missing + "\n", 200},
		{"/readyz/none", "ok\n", 200},
		{"/readyz/sched-handler-sync", "not yet", 500},
		{"/metrics", "go_goroutines", 200},
		{"/metrics/slis", "", 200},
		{"/metrics/resources", "requests", 200},
		{"/configz", `"componentconfig"`, 200},
		{"/flagz", "leader-elect", 200},
		{"/statusz", "Emulation version", 200},
		{"/debug/pprof/symbol", "num_symbols", 200},
		{"/berth/v1/records", "at /berth/v1/records", 200},
		{"/nothing", "", 404},
	}
	for _, tt := range tests {
		if code, body := get(t, h, tt.path); code != tt.code || !strings.Contains(body, tt.contains) {
			t.Errorf("%s: %d %.200q, want %d with %q", tt.path, code, body, tt.code, tt.contains)
		}
	}
	if refreshed != 1 {
		t.Errorf("metrics refreshed %d times, want 1", refreshed)
	}
	alive = errors.New("stuck")
	if code, body := get(t, h, "/livez"); code != 500 || !strings.Contains(body, "[-]scheduling-loop failed") {
		t.Errorf("/livez of a loop that is stuck: %d %q", code, body)
	}
	if code, body := get(t, h, "/healthz"); code != 200 {
		t.Errorf("/healthz of a loop that is stuck: %d %q", code, body)
	}
	leads = false
	if code, body := get(t, h, "/metrics/resources"); code != 200 || body != "" {
		t.Errorf("resources while another leads: %d %q", code, body)
	}
	ready = nil
	if code, body := get(t, h, "/readyz?verbose"); code != 200 || !strings.Contains(body, "[+]sched-handler-sync ok") ||
		!strings.HasSuffix(body, "\nsome kinds cannot be listed; see /readyz/missing\n") {
		t.Errorf("/readyz: %d %q", code, body)
	}
	if code, body := get(t, h, "/readyz"); code != 200 || body != "ok" {
		t.Errorf("/readyz: %d %q", code, body)
	}
}

// Without profiling the debugging paths are not there.
func TestProfilingOff(t *testing.T) {
	h := Handler(Options{Config: func() *configv1.KubeSchedulerConfiguration { return configuration(false) }, Refresh: func() {}})
	for _, path := range []string{"/debug/pprof/symbol", "/debug/flags/v", "/flagz", "/statusz"} {
		if code, _ := get(t, h, path); code != 404 {
			t.Errorf("%s: %d", path, code)
		}
	}
}

// /configz shows no key and no password, and leaves the configuration as it is.
func TestSecretsStayInside(t *testing.T) {
	c := configuration(false)
	_, body := get(t, Handler(Options{Config: func() *configv1.KubeSchedulerConfiguration { return c }, Refresh: func() {}}), "/configz")
	if strings.Contains(body, "passw0rd") || strings.Contains(body, "c2VjcmV0") || !strings.Contains(body, "cHVibGlj") { // base64 of "secret", "public"
		t.Errorf("got %s", body)
	}
	if string(c.Extenders[0].TLSConfig.KeyData) != "secret" || !strings.Contains(c.Extenders[0].URLPrefix, "passw0rd") {
		t.Error("the configuration itself was changed")
	}
}

// The end of the endpoint is logged in kube-scheduler's words.
func TestStopLines(t *testing.T) {
	s := &logstest.Sink{}
	klog.SetLoggerWithOptions(s.Logger(), klog.ContextualLogger(true))
	defer klog.ClearLogger()
	done := make(chan struct{})
	close(done)
	(&Server{stop: make(chan struct{}), stopped: done, silence: done}).Stop()
	for _, row := range logstest.Missing("edge/server, TestStopLines", s.Lines()) {
		t.Errorf("never written: %s", row)
	}
}

// With the gate CBORServingAndStorage /statusz and /flagz speak CBOR, without it they
// do not: as in kube-scheduler.
func TestCBOR(t *testing.T) {
	library := utilfeature.DefaultMutableFeatureGate
	for _, on := range []bool{false, true} {
		if err := library.SetFromMap(map[string]bool{"CBORServingAndStorage": on}); err != nil {
			t.Fatal(err)
		}
		h := Handler(Options{Config: func() *configv1.KubeSchedulerConfiguration { return configuration(false) }, Refresh: func() {},
			Flags: &cliflag.NamedFlagSets{}, Status: compatibility.NewEffectiveVersionFromString("1.36", "", "")})
		for path, kind := range map[string]string{"/statusz": "Statusz", "/flagz": "Flagz"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header.Set("Accept", "application/cbor;g=config.k8s.io;v=v1alpha1;as="+kind)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if want := map[bool]int{true: http.StatusOK, false: http.StatusNotAcceptable}[on]; w.Code != want {
				t.Errorf("gate %t, %s: %d, want %d: %s", on, path, w.Code, want, w.Body)
			}
		}
	}
	if err := library.SetFromMap(map[string]bool{"CBORServingAndStorage": false}); err != nil {
		t.Fatal(err)
	}
}

package tool

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// clusterCalls are calls of every command that asks an API server, but of record, which
// goes on asking.
var clusterCalls = []string{"simulate", "why web", "why --all", "what-if drain node-1", "fit", "why web --daemon auto", "top", "events web"}

// The flags that say to which cluster kubectl talks, and as whom, have the same meaning
// in every command that talks to a cluster.
func TestConnectionFlags(t *testing.T) {
	authority, asked := "", []string(nil)
	server := func(name string) string {
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h := r.Header
			asked = append(asked, strings.Join(append([]string{name, h.Get("Authorization"), h.Get("Impersonate-User")}, h["Impersonate-Group"]...), " "))
			http.Error(w, "no", http.StatusForbidden)
		}))
		t.Cleanup(s.Close)
		authority = base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
		return s.URL
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	third := server("third")
	write(t, path, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: one,
contexts: [{name: one, context: {cluster: one, user: ann}}, {name: two, context: {cluster: two, user: ann}}],
clusters: [{name: one, cluster: {server: %q, certificate-authority-data: &ca %s}}, {name: two, cluster: {server: %q, certificate-authority-data: *ca}}],
users: [{name: ann, user: {token: a}}, {name: bob, user: {token: b}}]}`, server("one"), authority, server("two")))
	t.Setenv("KUBECONFIG", path)
	for flags, want := range map[string]string{
		"":                             "one Bearer a ",
		"--context two":                "two Bearer a ",
		"--cluster two --user bob":     "two Bearer b ",
		"--token t":                    "one Bearer t ",
		"-s " + third:                  "third Bearer a ",
		"--server " + third:            "third Bearer a ",
		"--as eve --as-group x":        "one Bearer a eve x",
		"--kubeconfig /nowhere":        "",
		"--cluster nope --kubeconfig=": "",
	} {
		for _, call := range clusterCalls {
			if daemon := strings.Contains(call, "--daemon") || strings.Contains("top events", strings.Fields(call)[0]); daemon && strings.Contains(flags, "--as") {
				continue // TestCallsThatAreWrong
			}
			asked = nil
			status, _, errs := berth("", strings.Fields(call+" "+flags)...)
			if got := append(asked, "")[0]; status != exitInvalid || got != want {
				t.Errorf("berth %s %s: %d, asked %q, want %q; %s", call, flags, status, got, want, errs)
			}
		}
	}
	for _, flag := range []string{"--context two", "--cluster two", "--server " + third} {
		asked = nil
		berth("", strings.Fields("simulate -f testdata/small-pod.yaml "+flag)...)
		if len(asked) == 0 || strings.HasPrefix(asked[0], "one") {
			t.Errorf("files with %s: asked %q", flag, asked)
		}
	}
}

// --request-timeout bounds each request, and no library complains.
func TestRequestTimeout(t *testing.T) {
	var log bytes.Buffer
	logTo(&log)
	t.Cleanup(klog.ClearLogger)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(s.Close)
	for _, call := range clusterCalls {
		status, _, errs := berth("", append(strings.Fields(call), "--request-timeout=50ms", "--kubeconfig", kubeconfigFor(t, s.URL))...)
		if status != exitInvalid || !strings.Contains(errs, "imeout") {
			t.Errorf("berth %s: %d %s", call, status, errs)
		}
	}
	if log.Len() > 0 {
		t.Errorf("logged: %s", log.String())
	}
}

// Files that flags name are checked as those of a kubeconfig are.
func TestFilesOfConnectionFlags(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"certificate-authority", "client-certificate", "client-key"} {
		status, _, errs := berth("", "why", "web", "--kubeconfig", kubeconfigFor(t, "https://127.0.0.1:1"), "--"+flag, pipe)
		if status != exitInvalid || !strings.Contains(errs, pipe+": is a named pipe, not a regular file") {
			t.Errorf("--%s: %d %q", flag, status, errs)
		}
	}
}

// A command that has one of the flags has all of them, and none writes a cache or leaves
// a certificate unverified.
func TestConnectionFlagsTogether(t *testing.T) {
	for _, cmd := range newCommand("berth", Build{}).Commands() {
		if cmd.Flags().Lookup("kubeconfig") == nil {
			continue
		}
		for _, name := range connectionFlags() {
			if cmd.Flags().Lookup(name) == nil {
				t.Errorf("%s has no --%s", cmd.Name(), name)
			}
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "cache-dir" || f.Name == "insecure-skip-tls-verify" && cmd.Flags().Lookup("daemon") == nil {
				t.Errorf("%s has --%s", cmd.Name(), f.Name)
			}
		})
	}
}

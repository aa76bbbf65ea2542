package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/edge/manifest"
)

// Without --kubeconfig the cluster is that of kubectl: KUBECONFIG counts, and its
// current context unless another is named. --kubeconfig comes first.
func TestClusterOfKubectl(t *testing.T) {
	var asked string
	server := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked = name
			w.WriteHeader(http.StatusForbidden)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	file := func(a, b string) string {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		body := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a}}, {name: b, context: {cluster: b}}]
clusters: [{name: a, cluster: {server: %q}}, {name: b, cluster: {server: %q}}]
`, a, b)
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("KUBECONFIG", file(server("a"), server("b")))
	for _, call := range []string{"simulate", "why web", "why --all", "what-if drain node-1", "fit"} {
		asked = ""
		if status, _, errs := berth("", strings.Fields(call)...); status != exitInvalid || asked != "a" {
			t.Errorf("berth %s: asked %q, want %q; %s", call, asked, "a", errs)
		}
	}
	other := file(server("c"), server("d"))
	for _, tt := range []struct{ kubeconfig, context, want string }{
		{"", "", "a"}, {"", "b", "b"}, {other, "", "c"}, {other, "b", "d"},
	} {
		asked = ""
		if err := live(t.Context(), manifest.NewSet(), tt.kubeconfig, tt.context); err == nil || asked != tt.want {
			t.Errorf("--kubeconfig %q --context %q: asked %q, want %q; %v", tt.kubeconfig, tt.context, asked, tt.want, err)
		}
	}
}

// What the API server says of versions that the tool reads is not for its user.
func TestWarningsOfTheServer(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	path := filepath.Join(t.TempDir(), "kubeconfig")
	body := "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n"
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := loadKubeconfig(path, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := config.WarningHandler.(rest.NoWarnings); !ok {
		t.Errorf("warnings go to %T", config.WarningHandler)
	}
}

package tool

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/edge/decode"
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
		cluster := source{api: connectionTo(tt.kubeconfig, tt.context)}
		if err := cluster.live(t.Context(), manifest.NewSet()); err == nil || asked != tt.want {
			t.Errorf("--kubeconfig %q --context %q: asked %q, want %q; %v", tt.kubeconfig, tt.context, asked, tt.want, err)
		}
	}
}

func connectionTo(kubeconfig, context string) connection {
	c := newConnection()
	*c.flags.KubeConfig, *c.flags.Context = kubeconfig, context
	return c
}

// What the API server says of versions that the tool reads is not for its user.
func TestWarningsOfTheServer(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	path := filepath.Join(t.TempDir(), "kubeconfig")
	body := "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n"
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := connectionTo(path, "").config()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := config.WarningHandler.(rest.NoWarnings); !ok {
		t.Errorf("warnings go to %T", config.WarningHandler)
	}
}

// A list in pages is read to its end. One that has none is refused: it goes on where it
// was, without an object, or with objects that came before.
func TestListsInPages(t *testing.T) {
	for name, c := range map[string]struct {
		pages map[string]string // by continue token
		nodes int
		want  string
	}{
		"three pages":  {map[string]string{"": "a b", "b": "c d", "d": "e "}, 3, ""},
		"one token":    {map[string]string{"": "a b", "b": "c b"}, 0, "listing v1/Node: the API server's list has no end"},
		"a circle":     {map[string]string{"": "a b", "b": "c d", "d": "e b"}, 0, "node c: metadata.name: the same object"},
		"empty pages":  {map[string]string{"": "a b", "b": " c", "c": " d"}, 0, "listing v1/Node: the API server's list has no end"},
		"many at once": {map[string]string{"": "a "}, 1, ""},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for i := range decode.Kinds {
				if k := &decode.Kinds[i]; strings.HasSuffix(r.URL.Path, k.GroupVersion.String()+"/"+k.Resource) {
					list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: k.GroupVersion.String(), Kind: k.Name + "List"}}
					if k.Name == "Node" {
						object, next, _ := strings.Cut(c.pages[r.URL.Query().Get("continue")], " ")
						if list.Continue = next; object != "" {
							list.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: object}}}
						}
					}
					_ = json.NewEncoder(w).Encode(list)
					return
				}
			}
			w.WriteHeader(http.StatusNotFound)
		}))
		set := manifest.NewSet()
		cluster := source{api: connectionTo(kubeconfigFor(t, s.URL), "")}
		err := cluster.live(t.Context(), set)
		if c.want == "" && (err != nil || len(set.Nodes) != c.nodes) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, %d nodes, want %q and %d", name, err, len(set.Nodes), c.want, c.nodes)
		}
		s.Close()
	}
}

// A pod that has ended is in no list, and why answers about it all the same. Admission goes
// by what may be read, and a note says what may not.
func TestWhyOfAnEndedPod(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/api/v1/namespaces/default/pods/done" {
			fmt.Fprint(w, `{"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default", "name": "done", "uid": "u"},
				"spec": {"nodeName": "n", "containers": [{"name": "c"}]}, "status": {"phase": "Succeeded"}}`)
			return
		}
		for i := range decode.Kinds {
			if k := &decode.Kinds[i]; strings.HasSuffix(r.URL.Path, k.GroupVersion.String()+"/"+k.Resource) {
				_ = json.NewEncoder(w).Encode(&metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: k.GroupVersion.String(), Kind: k.Name + "List"}})
				return
			}
		}
		if strings.HasSuffix(r.URL.Path, "quotas") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer s.Close()
	for pod, want := range map[string]int{"done": exitPlaced, "default/done": exitPlaced, "dane": exitInvalid} {
		code, out, errs := berth("", "why", "--kubeconfig", kubeconfigFor(t, s.URL), pod)
		if code != want || want == exitPlaced && out != "default/done has ended on n: its phase is Succeeded.\n" || !strings.Contains(errs, "resourcequotas cannot be read, so they do not count for new pods") {
			t.Errorf("%s: exit status %d; %s; %s", pod, code, out, errs)
		}
	}
}

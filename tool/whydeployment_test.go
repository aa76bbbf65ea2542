package tool

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/manifest"
)

// replicaSet returns a revision of deployment shop/web in JSON, whose pods request so much
// memory.
func replicaSet(name string, revision int, memory string) string {
	return fmt.Sprintf(`{"metadata": {"namespace": "shop", "name": %q, "uid": %q, "creationTimestamp": "2026-11-2%dT02:00:00Z", "annotations": {"deployment.kubernetes.io/revision": "%d"},
		"ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": true}]},
		"spec": {"selector": {"matchLabels": {"a": %q}}, "template": {"metadata": {"labels": {"a": %q}}, "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"memory": %q}}}]}}}}`,
		name, name, revision, revision, name, name, memory)
}

// On a running cluster `why` reads the Deployment of the pod that it is asked about: a
// rollout that is complete is not undone. Where the Deployment cannot be read, that is said.
func TestWhyReadsTheDeployment(t *testing.T) {
	deployment := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		list := func(version, kind string, items ...string) {
			_, _ = fmt.Fprintf(w, `{"apiVersion": %q, "kind": %q, "items": [%s]}`, version, kind+"List", strings.Join(items, ","))
		}
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "/api/v1/nodes"):
			list("v1", "Node", `{"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}}`)
		case strings.HasSuffix(path, "/api/v1/pods"):
			list("v1", "Pod", `{"metadata": {"namespace": "shop", "name": "web-2-a", "uid": "u", "labels": {"a": "web-2"}, "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-2", "uid": "web-2", "controller": true}]},
				"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"memory": "40Gi"}}}]}}`)
		case strings.HasSuffix(path, "/replicasets"):
			list("apps/v1", "ReplicaSet", replicaSet("web-1", 1, "4Gi"), replicaSet("web-2", 2, "40Gi"))
		case path == "/apis/apps/v1/namespaces/shop/deployments/web" && deployment != "":
			_, _ = fmt.Fprintf(w, `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "shop", "name": "web", "uid": "d"},
				"spec": {"selector": {"matchLabels": {"b": "c"}}, "template": {"metadata": {"labels": {"b": "c"}}, "spec": {"containers": [{"name": "c"}]}}},
				"status": {"conditions": [{"type": "Progressing", "status": "True", "reason": %q}]}}`, deployment)
		default:
			kinds := slices.Concat(decode.Kinds, manifest.OfNewPods)
			at := slices.IndexFunc(kinds, func(k decode.Kind) bool { return strings.HasSuffix(path, k.GroupVersion.String()+"/"+k.Resource) })
			if at < 0 && !strings.HasSuffix(path, "/events") {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			if at < 0 {
				list("v1", "Event")
				return
			}
			list(kinds[at].GroupVersion.String(), kinds[at].Name)
		}
	}))
	defer s.Close()
	for _, c := range []struct {
		state        string // of the Deployment
		undone, note bool
	}{{"ReplicaSetUpdated", true, false}, {"NewReplicaSetAvailable", false, false}, {"", true, true}} {
		deployment = c.state
		_, out, errs := berth("", "why", "shop/web-2-a", "--kubeconfig", kubeconfigFor(t, s.URL))
		if undone := strings.Contains(out, "undo the last rollout"); undone != c.undone || !strings.Contains(out, "requests 40Gi memory") {
			t.Errorf("%q: the rollout is undone: %v, want %v\n%s", c.state, undone, c.undone, out)
		}
		if note := strings.Contains(errs, "reading deployment shop/web: "); note != c.note {
			t.Errorf("%q: said that it is not read: %v, want %v\n%s", c.state, note, c.note, errs)
		}
	}
}

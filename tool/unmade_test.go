package tool

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/manifest"
)

// The scheduler reads no workloads. To what it answers about one, or about all, the tool adds the
// replicas that were never made, with who holds the quota, and the pods that were preempted, as the
// API server says, in text and in JSON. A workload that is not there is an error, and the name of
// no pod that is a workload's names that. Where it may not
// ask, a note says what was not looked for, and that it is not known whether there is the workload.
func TestWhyFromTheDaemonSaysWhatWasNeverMade(t *testing.T) {
	forbidden, mayList := false, []string{"data", "shop"}
	objects := map[string]string{
		"deployments": `{"metadata": {"namespace": "shop", "name": "checkout"}, "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "checkout"}}, "template": {"metadata": {"labels": {"app": "checkout"}}, "spec": {"containers": [{"name": "c"}]}}},
			"status": {"conditions": [{"type": "ReplicaFailure", "status": "True", "message": "pods is forbidden: exceeded quota: compute, requested: cpu=1, used: cpu=4, limited: cpu=4"}]}}`,
		"pods":                    `{"metadata": {"namespace": "shop", "name": "load-1", "uid": "l", "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "load", "uid": "s", "controller": true}]}, "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}}`,
		"resourcequotas":          `{"metadata": {"namespace": "shop", "name": "compute"}, "spec": {"hard": {"cpu": "4"}}, "status": {"used": {"cpu": "4"}}}`,
		"events?reason=Preempted": `{"metadata": {"namespace": "shop", "name": "e"}, "reason": "Preempted", "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "checkout-5b7c9d4f6b-x2v4q", "uid": "v"}, "related": {"kind": "Pod", "namespace": "data", "name": "reindex-x2v4q"}}`,
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if forbidden {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		what := path.Base(r.URL.Path)
		if what == "selfsubjectaccessreviews" {
			body, _ := io.ReadAll(r.Body)
			allowed := slices.ContainsFunc(mayList, func(namespace string) bool { return strings.Contains(string(body), namespace) })
			fmt.Fprintf(w, `{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "status": {"allowed": %t}}`, allowed)
			return
		}
		if what == "pods" && !strings.Contains(r.URL.Path, "/namespaces/shop/") {
			t.Errorf("%s: asked for the pods of all namespaces", r.URL)
		}
		kind := "Event"
		for _, k := range slices.Concat(decode.Kinds, manifest.Controllers, manifest.OfNewPods) {
			if k.Resource == what {
				kind = k.Name
			}
		}
		if what == "events" {
			what += "?" + r.URL.Query().Get("fieldSelector")
		}
		version := strings.TrimPrefix(strings.TrimPrefix(strings.Split(path.Dir(r.URL.Path), "/namespaces/")[0], "/apis/"), "/api/")
		fmt.Fprintf(w, `{"apiVersion": %q, "kind": "%sList", "items": [%s]}`, version, kind, objects[what])
	}))
	defer s.Close()
	flags := scheduler(t, func(w http.ResponseWriter, r *http.Request) {
		if pod := r.URL.Query().Get("pod"); pod != "" {
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(api.Problem{Head: api.Head{Kind: "Problem"}, Reason: api.NotFound, Message: "pod " + pod + ": there is no such pod"})
			return
		}
		if r.URL.Query().Get("output") == "json" {
			fmt.Fprint(w, `{"apiVersion": "berth.dev/v1alpha1", "kind": "WhyList", "pods": 0, "missing": [], "causes": []}`)
			return
		}
		w.Header().Set("Berth-Pending", "0")
		fmt.Fprint(w, "No pod is pending.\n")
	})
	flags[1] = filepath.Join(t.TempDir(), "kubeconfig")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	write(t, flags[1], fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %q}}], users: [{name: u, user: {token: secret}}]}`, s.URL, base64.StdEncoding.EncodeToString(ca)))
	never := "\n3 pods of deployment/shop/checkout never made: pods is forbidden: exceeded quota: compute, requested: cpu=1, used: cpu=4, limited: cpu=4\n  Largest holder: statefulset/shop/load (4 CPUs, 1 pod)\n"
	preempted := "\n1 pod of deployment/shop/checkout was preempted by pods/data/reindex-*\n"
	for call, want := range map[string]string{
		"why -n shop deploy/checkout":         "No pod is pending.\n" + never + preempted,
		"why --all":                           "No pod is pending.\n" + never + preempted,
		"why -n shop deploy/checkout -o json": `"workload": "deployment/shop/checkout"`,
		"why --all -o yaml":                   "workload: deployment/shop/checkout\n",
	} {
		if status, out, errs := berth("", append(strings.Fields(call), flags...)...); status != exitWaiting || errs != "" || out != want && !(strings.Contains(call, "-o") && strings.Contains(out, want)) {
			t.Errorf("%s: %d %q %q, want %q", call, status, out, errs, want)
		}
	}
	for call, want := range map[string]string{
		"why -n shop job/none":        "berth: job shop/none: there is none, and no pod of it among 0\n",
		"why -n shop deploy/chekcout": "berth: deployment shop/chekcout: there is none, and no pod of it; did you mean shop/checkout?\n",
		"why -n shop checkout":        "berth: pod shop/checkout: there is no such pod; there is deployment shop/checkout: give deployment/checkout\n",
		"why shop/load":               "berth: pod shop/load: there is no such pod; there is statefulset shop/load: give shop/statefulset/load\n",
		"why -n shop loads":           "berth: pod shop/loads: there is no such pod; did you mean shop/load-1?\n",
		"why -n shop nothing":         "berth: pod shop/nothing: there is no such pod\n",
		"why -n shop podgroup/none":   "berth: podgroup shop/none: there is none, and no pod of it among 0\n",
	} {
		if status, out, errs := berth("", append(strings.Fields(call), flags...)...); status != exitInvalid || out != "" || errs != want {
			t.Errorf("%s: %d %q %q, want %q", call, status, out, errs, want)
		}
	}
	if status, out, errs := berth("", append([]string{"why", "-n", "shop", "sts/load"}, flags...)...); status != 0 || errs != "" || out != "No pod is pending.\n" {
		t.Errorf("a workload that is known by its pod: %d %q %q", status, out, errs)
	}
	mayList = []string{"shop"} // the event names a pod of another namespace all the same
	if status, out, errs := berth("", append([]string{"why", "-n", "shop", "deploy/checkout"}, flags...)...); status != exitWaiting || errs != "" || !strings.HasSuffix(out, "\n1 pod of deployment/shop/checkout was preempted\n") {
		t.Errorf("the preemptor's pods may not be listed: %d %q %q", status, out, errs)
	}
	forbidden = true
	const unknown = "berth: note: it is not known whether there is a job shop/none: listing "
	if status, out, errs := berth("", append([]string{"why", "-n", "shop", "job/none"}, flags...)...); status != 0 || out != "No pod is pending.\n" || !strings.HasPrefix(errs, unknown) {
		t.Errorf("a workload that may not be read: %d %q %q", status, out, errs)
	}
	status, out, errs := berth("", append([]string{"why", "--all"}, flags...)...)
	if status != 0 || out != "No pod is pending.\n" || !strings.HasPrefix(errs, "berth: note: replicas that were never made were not looked for: listing ") {
		t.Errorf("where nothing may be read: %d %q %q", status, out, errs)
	}
}

package tool

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/why"
)

// serverFor plays an API server with some pods that lets somebody read what may says, by path.
func serverFor(t *testing.T, pods []v1.Pod, may func(path string) bool) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		switch {
		case !may(r.URL.Path):
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: 403, Message: r.URL.Path + " is forbidden"})
		case parts[len(parts)-2] == "pods":
			for _, p := range pods {
				if p.Name == parts[len(parts)-1] {
					_ = json.NewEncoder(w).Encode(p)
				}
			}
		case parts[len(parts)-1] == "pods": // two on a page
			list := v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: pods}
			from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
			if list.Items = pods[from:]; len(list.Items) > 2 {
				list.Items, list.Continue = list.Items[:2], strconv.Itoa(from+2)
			}
			_ = json.NewEncoder(w).Encode(list)
		case parts[len(parts)-1] == "nodes":
			n := v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
			_ = json.NewEncoder(w).Encode(v1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: []v1.Node{n}})
		case parts[len(parts)-1] == "events":
			_ = json.NewEncoder(w).Encode(v1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}})
		default:
			for _, k := range slices.Concat(decode.Kinds, makers, manifest.OfNewPods) {
				if k.Resource == parts[len(parts)-1] && strings.Contains(r.URL.Path, "/"+k.GroupVersion.String()+"/") {
					_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": k.GroupVersion.String(), "kind": k.Name + "List"})
					return
				}
			}
		}
	}))
	t.Cleanup(s.Close)
	return kubeconfigFor(t, s.URL)
}

// Whoever may read the pods of a namespace alone is told what their conditions say, and what
// is missing. Commands that cannot do without nodes say which rights are needed.
func TestFewRights(t *testing.T) {
	pod := func(name string, change func(*v1.Pod)) v1.Pod {
		p := v1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}}}
		change(&p)
		return p
	}
	rejected := func(p *v1.Pod) {
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Message: "0/9 nodes are available: 9 Insufficient cpu.", LastTransitionTime: metav1.NewTime(noon)}}
	}
	pods := []v1.Pod{pod("a", rejected), pod("b", rejected), pod("new", func(*v1.Pod) {}), pod("run", func(p *v1.Pod) { p.Spec.NodeName = "n1" }),
		pod("pulls", func(p *v1.Pod) {
			p.Spec.NodeName, p.Status.Phase = "n1", v1.PodPending
			p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "c", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}
		}),
		pod("gated", func(p *v1.Pod) { rejected(p); p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "g"}} })}
	kubeconfig := serverFor(t, pods, func(path string) bool { return strings.Contains(path, "/namespaces/shop/") })
	const note = "berth: note: cannot list nodes and pods of all namespaces: answers about nodes are missing; ask with --daemon\n"
	for call, want := range map[string]struct {
		status int
		out    string
	}{
		"why shop/a":            {exitWaiting, "shop/a waits. Its condition says, since 2026-01-31T12:00:00Z:\n\n0/9 nodes are available: 9 Insufficient cpu.\n"},
		"why -n shop new":       {exitWaiting, "Its conditions do not say that the scheduler default-scheduler has looked at it.\n"},
		"why shop/run":          {0, "shop/run runs on n1.\n"},
		"why shop/pulls":        {0, "shop/pulls is placed on n1 and has not started: container c waits (ErrImagePull)."},
		"why shop/gated -oyaml": {exitWaiting, "verdict: Gated\n"},
		"why --all -n shop":     {exitWaiting, "6 pods are pending, by cause"},
		"why shop/a -ojson":     {exitWaiting, `"message": "0/9 nodes are available: 9 Insufficient cpu."`},
	} {
		status, out, err := berth("", append(strings.Fields(call), "--kubeconfig", kubeconfig)...)
		if status != want.status || !strings.Contains(out, want.out) || err != note {
			t.Errorf("%s: %d %q %q, want %d %q", call, status, out, err, want.status, want.out)
		}
	}
	for call, want := range map[string]string{
		"why -n shop deploy/typo": "deployment shop/typo: there is none, and no pod of it",
		"why default/x":           "reading pod default/x: /api/v1/namespaces/default/pods/x is forbidden",
		"simulate":                "cannot list nodes and pods of all namespaces: the API server forbids it; the ClusterRole berth-scheduler-tool",
		"fit":                     "cannot list nodes and pods of all namespaces",
		"what-if drain n1":        "cannot list nodes and pods of all namespaces",
	} {
		if status, out, err := berth("", append(strings.Fields(call), "--kubeconfig", kubeconfig)...); status != exitInvalid || out != "" || !strings.Contains(err, want) {
			t.Errorf("%s: %d %q %q, want %q", call, status, out, err, want)
		}
	}
	kubeconfig = serverFor(t, pods, func(path string) bool { return strings.HasPrefix(path, "/api/v1/namespaces/shop/") })
	if status, out, err := berth("", "why", "-n", "shop", "deploy/typo", "--kubeconfig", kubeconfig); status != 0 || !strings.Contains(err, "note: cannot list deployments, ") || !strings.Contains(err, "was not looked for\n") {
		t.Errorf("deployments may not be read: %d %q %q", status, out, err)
	}
	r := listSaid(pods[:3], why.Scope{})
	if r.Pods != 3 || len(r.Causes) != 2 || r.Causes[0].Pods != 2 || r.Causes[0].Sentence != "0/9 nodes are available: 9 Insufficient cpu." || r.Causes[1].Examples[0] != "shop/new" {
		t.Errorf("%+v", r)
	}
}

// Without the right to list a kind that only some pods depend on the answer is whole but for
// what depends on it, and says so.
func TestOneKindIsForbidden(t *testing.T) {
	pods := []v1.Pod{{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "a"}, Spec: v1.PodSpec{SchedulerName: v1.DefaultSchedulerName, Containers: []v1.Container{{Name: "c", Image: "i"}}}}}
	kubeconfig := serverFor(t, pods, func(path string) bool {
		return !strings.HasSuffix(path, "/persistentvolumes") && !strings.HasSuffix(path, "/services")
	})
	status, out, err := berth("", "why", "shop/a", "--kubeconfig", kubeconfig)
	if status == exitInvalid || !strings.Contains(out, "shop/a") || !strings.Contains(err, "note: cannot list services of all namespaces, persistentvolumes: the API server forbids it; what depends on them is not part of the answer") {
		t.Errorf("%d %q %q", status, out, err)
	}
}

// All classes and templates are known of files, and of a cluster if they may be listed.
func TestKnownKinds(t *testing.T) {
	for refused, want := range map[string][2]bool{"none": {true, true}, "priorityclasses": {false, true}, "resourceclaimtemplates": {true, false}} {
		kubeconfig := serverFor(t, nil, func(path string) bool { return !strings.HasSuffix(path, "/"+refused) })
		set, err := (&source{api: connectionTo(kubeconfig, "")}).read(t.Context(), false, nil, io.Discard)
		if err != nil || [2]bool{set.Knows.Classes, set.Knows.Templates} != want {
			t.Fatalf("%s may not be listed: %v, known otherwise than classes, templates %v", refused, err, want)
		}
	}
	node := filepath.Join(t.TempDir(), "node.yaml")
	if err := os.WriteFile(node, []byte("apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if set, err := (&source{files: []string{node}, api: newConnection()}).read(t.Context(), false, nil, io.Discard); err != nil || !set.Knows.Classes || !set.Knows.Templates {
		t.Errorf("files: %v, or not all known", err)
	}
}

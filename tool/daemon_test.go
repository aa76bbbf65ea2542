package tool

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/pin"
	"github.com/berth-scheduler/berth/edge/records"
)

// scheduler is a server that answers as a daemon would, to the bearer of a token, with
// a certificate of its own. It returns the flags with which it is asked.
func scheduler(t *testing.T, answer http.HandlerFunc) []string {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	write(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	return []string{"--kubeconfig", kubeconfigFor(t, "https://nowhere:1"), "--daemon", s.URL, "--daemon-ca", ca}
}

func kubeconfigFor(t testing.TB, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, path, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {token: secret}}]}`, server))
	return path
}

func write(t testing.TB, path, body string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
}

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// What the daemon answers is printed, a record a line.
func TestEventsAndTop(t *testing.T) {
	asked, shadow, hosted, none := "", false, false, false
	flags := scheduler(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		record := records.Record{Time: noon, Type: records.Attempt, Pod: "shop/cart", Attempt: 3, Result: "Unschedulable", Message: "0/2 nodes are available: 2 Insufficient cpu."}
		switch strings.TrimPrefix(r.URL.Path, api.Prefix) {
		case "records":
			if none {
				fmt.Fprint(w, `{"apiVersion": "berth.dev/v1alpha1", "kind": "RecordList", "records": []}`)
				return
			}
			_ = json.NewEncoder(w).Encode(api.RecordList{Head: api.Head{APIVersion: api.Version, Kind: "RecordList"}, Records: []records.Record{record}})
		case "watch":
			data, _ := json.Marshal(record)
			w.Header().Set("Content-Type", "text/event-stream")
			if r.Header.Get("Last-Event-ID") != "a-1-0-1" {
				fmt.Fprintf(w, "id: a-1-0-1\nevent: record\ndata: %s\n\nevent: end\ndata: {\"kind\":\"Problem\",\"reason\":\"StreamEnded\"}\n\n", data)
				return
			}
			fmt.Fprintf(w, ": alive\n\nevent: record\ndata: %s\n\nevent: lost\ndata: {\"lost\":7}\n\nevent: end\ndata: {\"kind\":\"Problem\",\"message\":\"the daemon stops\"}\n\n", data)
		case "summary":
			_ = json.NewEncoder(w).Encode(api.Summary{Head: api.Head{APIVersion: api.Version, Kind: "Summary"}, Time: noon, Leader: "host_1", Shadow: shadow, Hosted: hosted, Queue: api.Queue{Unschedulable: 412}, Nodes: 2,
				Rates:    records.Rates{Seconds: 60, Attempts: map[string]int{"Scheduled": 5, "Unschedulable": 7}, Bound: 5, Requeued: map[string]int{"NodeAdd": 3}},
				Blocking: []records.Blocking{{Plugin: "NodeResourcesFit", Reason: "Insufficient cpu", Pods: 412}}, Log: records.Size{Bytes: 3 << 20, Limit: 64 << 20}})
		}
	})
	status, out, err := berth("", append([]string{"events", "-n", "shop", "cart"}, flags...)...)
	if want := "2026-01-31T12:00:00.000Z attempt 3: 0/2 nodes are available: 2 Insufficient cpu.\n"; status != 0 || out != want || !strings.Contains(asked, "pod=shop%2Fcart") {
		t.Errorf("events: %d %q %q, asked %s", status, out, err, asked)
	}
	status, out, err = berth("", append([]string{"events", "--reason", "cpu", "--follow"}, flags...)...)
	// Of the two streams the first ends as all do, and the second goes on behind its last event.
	if status != 2 || strings.Count(out, "Z shop/cart attempt 3") != 2 || !strings.Contains(out, "(7 records were lost here") || !strings.Contains(err, "the daemon stops") {
		t.Errorf("events --follow: %d %q %q", status, out, err)
	}
	status, out, err = berth("", append([]string{"top"}, flags...)...)
	for _, want := range []string{"host_1", "unschedulable 412", "12 attempts (Unschedulable 7, Scheduled 5), 5 bound", "NodeAdd 3", "`berth why --all` says", "412  NodeResourcesFit  Insufficient cpu", "3.0 of 64 MiB"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("top: %d %q, want %q; %q", status, out, want, err)
		}
	}
	hosted = true // why --all is refused there
	if status, out, err := berth("", append([]string{"top"}, flags...)...); status != 0 || strings.Contains(out, "why") || !strings.Contains(out, "`berth events NAMESPACE/POD` tells") {
		t.Errorf("top where hosted plugins run: %d %q %q", status, out, err)
	}
	shadow = true
	if status, out, err := berth("", append([]string{"top"}, flags...)...); status != 0 || !strings.HasPrefix(out, "SHADOW") || strings.Contains(out, "LEADER") {
		t.Errorf("top of a shadow: %d %q %q", status, out, err)
	}
	none = true
	if status, out, err := berth("", append([]string{"events", "--reason", "cpu"}, flags...)...); status != 0 || out != "" || !strings.HasPrefix(err, "berth: note: no record matches") {
		t.Errorf("events: %d %q %q", status, out, err)
	}
	for args, want := range map[string]string{
		"cart":         "pod default/cart; if it is in another namespace, give NAMESPACE/NAME; ",
		"cart -n shop": "pod shop/cart; ",
		"shop/cart":    "pod shop/cart; ",
	} {
		_, _, err := berth("", slices.Concat([]string{"events"}, strings.Fields(args), flags)...)
		if want = "berth: note: no record matches " + want + "\"top\" says since when there are records\n"; err != want {
			t.Errorf("events %s: %q, want %q", args, err, want)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Errorf("escapes where there is no terminal: %q", out)
	}
}

// Where there is no such pod in the namespace that was taken, the message says how to give
// another.
func TestWhyFromTheDaemonElsewhere(t *testing.T) {
	flags := scheduler(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(api.Problem{Head: api.Head{Kind: "Problem"}, Reason: api.NotFound, Message: "pod " + r.URL.Query().Get("pod") + ": there is no such pod"})
	})
	for call, want := range map[string]string{
		"why pod/cart":     "pod default/cart: there is no such pod; if it is in another namespace, give NAMESPACE/cart",
		"events pods/cart": "pod default/cart: there is no such pod",
		"why cart":         "pod default/cart: there is no such pod; if it is in another namespace, give NAMESPACE/cart",
		"why shop/cart":    "pod shop/cart: there is no such pod",
		"why -n shop cart": "pod shop/cart: there is no such pod",
	} {
		if status, out, err := berth("", append(strings.Fields(call), flags...)...); status != exitInvalid || out != "" || err != "berth: "+want+"\n" {
			t.Errorf("%s: %d %q %q, want %q", call, status, out, err, want)
		}
	}
}

// The daemon's text is passed on, and its verdict is the exit status. About all pods it
// is whether any is pending.
func TestWhyFromTheDaemon(t *testing.T) {
	flags := scheduler(t, func(w http.ResponseWriter, r *http.Request) {
		switch at := r.URL.String(); {
		case at == "/berth/v1/why/all?kind=WhyList&output=json":
			fmt.Fprint(w, `{"apiVersion": "berth.dev/v1alpha1", "kind": "WhyList", "pods": 0}`)
			return
		case at == "/berth/v1/why/all?output=wide":
			w.Header().Set("Berth-Pending", "412")
			fmt.Fprint(w, "412 pods are pending\n")
			return
		}
		if r.URL.Query().Get("output") == "json" {
			fmt.Fprint(w, `{"apiVersion": "berth.dev/v1alpha1", "kind": "Why", "verdict": "Misconfigured"}`)
			return
		}
		w.Header().Set("Berth-Verdict", "Waiting")
		fmt.Fprint(w, "shop/cart waits\n")
	})
	if status, out, err := berth("", append([]string{"why", "shop/cart"}, flags...)...); status != exitWaiting || out != "shop/cart waits\n" {
		t.Errorf("%d %q %q", status, out, err)
	}
	if status, out, err := berth("", append([]string{"why", "shop/cart", "-o", "yaml"}, flags...)...); status != exitMisconfigured || !strings.HasSuffix(out, "\nverdict: Misconfigured\n") {
		t.Errorf("%d %q %q", status, out, err)
	}
	if status, out, err := berth("", append([]string{"why", "--all", "-o", "wide"}, flags...)...); status != exitWaiting || out != "412 pods are pending\n" {
		t.Errorf("%d %q %q", status, out, err)
	}
	if status, out, err := berth("", append([]string{"why", "--all", "-o", "json"}, flags...)...); status != 0 || !strings.HasSuffix(out, `"pods": 0}`) {
		t.Errorf("%d %q %q", status, out, err)
	}
}

func TestDaemonRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"another leads": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(503)
			fmt.Fprint(w, `{"kind": "Problem", "code": 503, "reason": "NotLeading", "message": "this daemon does not lead: b does"}`)
		}, "this daemon does not lead: b does; ask that one, or --daemon auto"},
		"no such pod": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(404)
			fmt.Fprint(w, `{"kind": "Problem", "code": 404, "reason": "NotFound", "message": "pod shop/cart: there is no record of it"}`)
		}, "berth: pod shop/cart: there is no record of it"},
		"no right": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(403)
			fmt.Fprint(w, `{"kind": "Status", "message": "forbidden: User \"eve\" cannot get path \"/berth/v1/records\""}`)
		}, `access to /berth/v1/ is forbidden (403): forbidden: User "eve" cannot get path "/berth/v1/records"; the ClusterRole berth-scheduler-reader`},
		"kube-scheduler": {http.NotFound, "there is no /berth/v1/ (404): this is not berth-scheduler, or an older version of it"},
		"nonsense":       {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "the daemon's answer: invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, err := berth("", append([]string{"events", "shop/cart"}, scheduler(t, test.answer)...)...)
			if status != exitInvalid || !strings.Contains(err, test.want) {
				t.Errorf("%d %q, want %q", status, err, test.want)
			}
		})
	}
	flags := scheduler(t, func(http.ResponseWriter, *http.Request) { t.Error("the token was sent to whom nobody trusts") })
	if status, _, err := berth("", append([]string{"top"}, flags[:4]...)...); status != exitInvalid || !strings.Contains(err, "--daemon-ca") {
		t.Errorf("an unknown certificate: %d %q", status, err)
	}
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	home := clientcmd.RecommendedHomeFile
	clientcmd.RecommendedHomeFile = filepath.Join(t.TempDir(), "none")
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = home })
	none := append([]string{"top"}, scheduler(t, func(http.ResponseWriter, *http.Request) { t.Error("it knows nobody") })[2:]...)
	if status, _, err := berth("", none...); status != exitInvalid || !strings.Contains(err, "the request was refused (401): there is no kubeconfig, so no credentials were sent") {
		t.Errorf("without a kubeconfig: %d %q", status, err)
	}
	for args, want := range map[string]string{
		"events":                              "which pod?",
		"events a --daemon ftp://x":           "--daemon ftp://x: must be like https://HOST:PORT, or auto",
		"events a --daemon http://x:1":        "must be like https://HOST:PORT",
		"events a -o xml":                     "-o xml: must be text, json, name, jsonpath=TEMPLATE or go-template=TEMPLATE",
		"top --interval 1ms":                  "--interval 1ms: must be 500ms at least",
		"why a --daemon auto -f x.yaml":       "--filename: the scheduler that --daemon asks answers about its own cluster; leave it out",
		"why a --all --daemon auto":           "--all: takes no pod",
		"why a --daemon auto --config c.yaml": "--config: the scheduler that --daemon asks has its own; leave it out",
		"top --lease nonsense --daemon auto":  "--lease nonsense: must be NAMESPACE/NAME",
	} {
		all := append(strings.Fields(args), "--kubeconfig", kubeconfigFor(t, "https://127.0.0.1:1"))
		if status, _, err := berth("", all...); status != exitInvalid || !strings.Contains(err, want) {
			t.Errorf("%s: %d %q, want %q", args, status, err, want)
		}
	}
}

// leaseOf is a lease with a pin that somebody wrote when he held it.
func leaseOf(holder, says string, certificates ...[]byte) *coordinationv1.Lease {
	l := &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &says}}
	if err := pin.Write(l, certificates); err != nil {
		panic(err) // a pin is always JSON
	}
	l.Spec.HolderIdentity = &holder
	return l
}

// apiWithLeases plays an API server with leases, and with pods by namespace/name. Only
// leases by name and pods of kube-system can be read if it is narrow. It notes the pod to
// which a port is to be forwarded, and refuses that.
type apiWithLeases struct {
	leases    map[string]*coordinationv1.Lease
	pods      []v1.Pod
	narrow    bool
	forwarded string
}

func (a *apiWithLeases) refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Message: message, Reason: reason, Code: int32(code)})
}

func (a *apiWithLeases) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	namespace, name := "", ""
	if at := slices.Index(parts, "namespaces"); at >= 0 {
		namespace = parts[at+1]
		if len(parts) > at+3 {
			name = parts[at+3]
		}
	}
	switch selector := r.URL.Query().Get("fieldSelector"); {
	case parts[len(parts)-1] == "subjectaccessreviews":
		body, _ := io.ReadAll(r.Body)
		review := authorizationv1.SubjectAccessReview{}
		_, _, _ = scheme.Codecs.UniversalDeserializer().Decode(body, nil, &review) // JSON or protobuf
		a := review.Spec.ResourceAttributes
		review.Status.Allowed = review.Spec.User == "system:serviceaccount:team-a:mine" && a.Verb+a.Namespace+a.Resource+a.Subresource == "createpodsbinding"
		review.TypeMeta = metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}
		_ = json.NewEncoder(w).Encode(review)
	case parts[len(parts)-1] == "portforward":
		a.forwarded = namespace + "/" + name
		a.refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "cannot create pods/portforward")
	case a.narrow && (namespace == "" || slices.Contains(parts, "pods") && namespace != "kube-system"):
		a.refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "forbidden: "+r.URL.Path)
	case slices.Contains(parts, "leases") && name == "":
		list := coordinationv1.LeaseList{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "LeaseList"}}
		for _, key := range slices.Sorted(maps.Keys(a.leases)) {
			if a.leases[key].Labels[pin.Label] != "" && r.URL.Query().Get("labelSelector") == pin.Label || selector == "metadata.name="+a.leases[key].Name {
				list.Items = append(list.Items, *a.leases[key])
			}
		}
		_ = json.NewEncoder(w).Encode(list)
	case slices.Contains(parts, "leases") && a.leases[namespace+"/"+name] != nil:
		_ = json.NewEncoder(w).Encode(a.leases[namespace+"/"+name])
	case parts[len(parts)-1] == "pods":
		list := v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		for _, p := range a.pods {
			if (namespace == "" || p.Namespace == namespace) && (!strings.HasPrefix(selector, "metadata.name=") || selector == "metadata.name="+p.Name) {
				list.Items = append(list.Items, p)
			}
		}
		_ = json.NewEncoder(w).Encode(list)
	default:
		for _, p := range a.pods {
			if p.Namespace == namespace && p.Name == name {
				_ = json.NewEncoder(w).Encode(p)
				return
			}
		}
		a.refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
	}
}

// set sets a lease that was held by says when it was labelled, and is held by holder.
func (a *apiWithLeases) set(key, holder, says string, age time.Duration) {
	l := leaseOf(holder, says, []byte("certificate"))
	l.Namespace, l.Name, _ = strings.Cut(key, "/")
	l.Spec.RenewTime = &metav1.MicroTime{Time: noon.Add(-age)}
	if a.leases == nil {
		a.leases = map[string]*coordinationv1.Lease{}
	}
	a.leases[key] = l
}

func podOn(namespace, name, node string, labels map[string]string) v1.Pod {
	return v1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: v1.PodSpec{NodeName: node, HostNetwork: labels != nil}, Status: v1.PodStatus{Phase: v1.PodRunning}}
}

// The scheduler is found by its lease, whatever that and its namespace are called: its pod,
// or the pod in the host's network, or a pod of another namespace than the lease's.
// kube-scheduler, which keeps what Berth said before it, is never taken for Berth.
func TestFindTheLeader(t *testing.T) {
	pods := []v1.Pod{podOn("kube-system", "berth-7f9", "", nil), podOn("team-a", "mine-1", "", nil),
		podOn("kube-system", "kube-scheduler-master", "master", map[string]string{"component": "kube-scheduler"}),
		podOn("kube-system", "node-1", "node-2", nil), podOn("kube-system", "kube-scheduler-node-1", "node-1", map[string]string{"component": "kube-scheduler"}),
		podOn("team-b", "evil-1", "", nil), podOn("team-c", "static-1", "", nil)}
	pods[1].Spec.ServiceAccountName, pods[5].Spec.ServiceAccountName = "mine", "evil"
	type lease struct {
		key, holder, says string
		age               time.Duration
	}
	for name, c := range map[string]struct {
		leases []lease
		narrow bool
		flags  string
		want   string // the pod that is reached, or what is said
	}{
		"the manifests'":           {leases: []lease{{"kube-system/berth-scheduler", "berth-7f9_1", "berth-7f9_1", 0}}, want: "kube-system/berth-7f9"},
		"few rights":               {leases: []lease{{"kube-system/berth-scheduler", "berth-7f9_1", "berth-7f9_1", 0}}, narrow: true, want: "kube-system/berth-7f9"},
		"a release of any name":    {leases: []lease{{"team-a/mine", "mine-1_1", "mine-1_1", 0}, {"kube-system/kube-scheduler", "master_1", "", 0}}, want: "team-a/mine-1"},
		"a pod of the host's name": {leases: []lease{{"kube-system/kube-scheduler", "node-1_1", "node-1_1", 0}}, want: "kube-system/kube-scheduler-node-1"},
		"in the host's network":    {leases: []lease{{"kube-system/kube-scheduler", "master_1", "master_1", 0}}, want: "kube-system/kube-scheduler-master"},
		"in another's namespace":   {leases: []lease{{"kube-system/kube-scheduler", "mine-1_1", "mine-1_1", 0}}, want: "team-a/mine-1"},
		"one that ended long ago": {leases: []lease{{"kube-system/berth-scheduler", "berth-7f9_1", "berth-7f9_1", time.Hour}, {"team-a/mine", "mine-1_1", "mine-1_1", 0}},
			want: "team-a/mine-1"},
		"several": {leases: []lease{{"kube-system/berth-scheduler", "berth-7f9_1", "berth-7f9_1", 0}, {"team-a/mine", "mine-1_1", "mine-1_1", 0}},
			want: "several schedulers lead, each with a lease of its own: give --lease kube-system/berth-scheduler or --lease team-a/mine"},
		"the one that is named": {leases: []lease{{"kube-system/berth-scheduler", "berth-7f9_1", "berth-7f9_1", 0}, {"team-a/mine", "mine-1_1", "mine-1_1", 0}},
			flags: "--lease team-a/mine", want: "team-a/mine-1"},
		"outside the cluster":     {leases: []lease{{"kube-system/kube-scheduler", "laptop_1", "laptop_1", 0}}, want: "held by laptop_1, which is no pod; if the scheduler runs outside the cluster, give --daemon URL"},
		"kube-scheduler":          {leases: []lease{{"kube-system/kube-scheduler", "master_1", "", 0}}, want: "the lease kube-system/kube-scheduler is held by master_1: kube-scheduler, which is not Berth"},
		"kube-scheduler after it": {leases: []lease{{"kube-system/kube-scheduler", "master_1", "berth-7f9_1", 0}}, want: "the lease kube-system/kube-scheduler is held by master_1: kube-scheduler, which is not Berth"},
		"kube-scheduler, by name": {leases: []lease{{"kube-system/kube-scheduler", "master_1", "", 0}}, flags: "--lease kube-system/kube-scheduler", want: "kube-scheduler, which is not Berth"},
		"another's, who may not bind": {leases: []lease{{"team-b/evil", "evil-1_1", "evil-1_1", 0}},
			want: "--daemon auto: the lease team-b/evil is not taken for a scheduler's: its holder, pod team-b/evil-1, may not bind pods"},
		"another's from the future": {leases: []lease{{"kube-system/berth-scheduler", "berth-7f9_1", "berth-7f9_1", 0}, {"team-b/evil", "evil-1_1", "evil-1_1", -200 * 365 * 24 * time.Hour}},
			want: "kube-system/berth-7f9"},
		"another's beside ours":     {leases: []lease{{"kube-system/berth-scheduler", "berth-7f9_1", "berth-7f9_1", 0}, {"team-b/evil", "evil-1_1", "evil-1_1", 0}}, want: "kube-system/berth-7f9"},
		"another's, ours late":      {leases: []lease{{"kube-system/berth-scheduler", "berth-7f9_1", "berth-7f9_1", time.Hour}, {"team-b/evil", "evil-1_1", "evil-1_1", 0}}, want: "kube-system/berth-7f9"},
		"another's, trusted":        {leases: []lease{{"team-b/evil", "evil-1_1", "evil-1_1", 0}}, flags: "--lease team-b/evil", want: "team-b/evil-1"},
		"without a service account": {leases: []lease{{"team-c/static", "static-1_1", "static-1_1", 0}}, want: "its holder, pod team-c/static-1, has no service account"},
		"elsewhere with few rights": {leases: []lease{{"team-a/mine", "mine-1_1", "mine-1_1", 0}}, narrow: true, want: "leases of all namespaces may not be listed: give --lease NAMESPACE/NAME if it is another"},
		"nobody":                    {want: "nobody holds the lease kube-system/berth-scheduler or kube-system/kube-scheduler; if it runs with --leader-elect=false or outside the cluster, give --daemon URL"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &apiWithLeases{pods: pods, narrow: c.narrow}
			for _, l := range c.leases {
				a.set(l.key, l.holder, l.says, l.age)
			}
			server := httptest.NewServer(a)
			defer server.Close()
			status, _, err := berth("", append(strings.Fields("top "+c.flags), "--kubeconfig", kubeconfigFor(t, server.URL))...)
			if status != exitInvalid || a.forwarded != c.want && !strings.Contains(err, c.want) {
				t.Errorf("%d: forwarded to %q, %q, want %q", status, a.forwarded, err, c.want)
			}
			if strings.Contains(c.want, " ") && a.forwarded != "" {
				t.Errorf("a port is forwarded to %s", a.forwarded)
			}
		})
	}
}

// BERTH_DAEMON stands for --daemon, and the flag counts more. A call that has a cluster of
// its own does not ask the daemon.
func TestDaemonOfTheEnvironment(t *testing.T) {
	asked := false
	flags := scheduler(t, func(w http.ResponseWriter, _ *http.Request) {
		asked = true
		w.Header().Set("Berth-Verdict", "Waiting")
		fmt.Fprint(w, "shop/cart waits\n")
	})
	url := flags[3]
	rest := append(slices.Clone(flags[:2]), flags[4:]...)
	t.Setenv(daemonVariable, url)
	if status, out, err := berth("", append([]string{"why", "shop/cart"}, rest...)...); status != exitWaiting || out != "shop/cart waits\n" {
		t.Errorf("%d %q %q", status, out, err)
	}
	if _, out, _ := berth("", "why", "--help"); !strings.Contains(out, "BERTH_DAEMON sets the default (default \""+url) {
		t.Errorf("--help does not name it: %s", out)
	}
	asked = false
	file := filepath.Join(t.TempDir(), "pod.yaml")
	write(t, file, "{apiVersion: v1, kind: Pod, metadata: {name: cart, namespace: shop}, spec: {containers: [{name: c, image: i}]}}")
	if status, out, err := berth("", "why", "-f", file, "shop/cart"); asked || !strings.Contains(out, "shop/cart") {
		t.Errorf("files: asked %t, %d %q %q", asked, status, out, err)
	}
	t.Setenv(daemonVariable, "https://127.0.0.1:1")
	if status, _, err := berth("", append([]string{"why", "shop/cart"}, flags...)...); status != exitWaiting || !asked {
		t.Errorf("the flag: asked %t, %d %q", asked, status, err)
	}
}

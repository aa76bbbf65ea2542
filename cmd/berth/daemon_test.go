package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func kubeconfigFor(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, path, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {token: secret}}]}`, server))
	return path
}

func write(t *testing.T, path, body string) {
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
			if since, _ := time.Parse(time.RFC3339Nano, r.URL.Query().Get("since")); !since.Equal(noon.Add(1)) {
				fmt.Fprintf(w, "event: record\ndata: %s\n\nevent: end\ndata: {\"kind\":\"Problem\",\"reason\":\"StreamEnded\"}\n\n", data)
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
	// Of the two streams the first ends as all do, and the second goes on behind its last record.
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
		case at == "/berth/v1/why/all?output=json":
			fmt.Fprint(w, `{"apiVersion": "berth.dev/v1alpha1", "kind": "WhyAll", "pending": 0}`)
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
	if status, out, err := berth("", append([]string{"why", "--all", "-o", "json"}, flags...)...); status != 0 || !strings.HasSuffix(out, `"pending": 0}`) {
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
		"events a -o xml":                     "-o xml: must be text or json",
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

// The scheduler is found by its lease: its pod, or the pod in the host's network.
func TestFindTheLeader(t *testing.T) {
	holder, says := "berth-7f9_b1c2", "berth-7f9_b1c2"
	pods := `{"metadata": {"name": "berth-7f9", "namespace": "kube-system"}, "spec": {"containers": [{"args": ["--secure-port=10300"]}]}}`
	forwarded := ""
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "/leases/kube-scheduler") && holder != "":
			_ = json.NewEncoder(w).Encode(leaseOf(holder, says, []byte("certificate")))
		case strings.HasSuffix(path, "/pods/berth-7f9"):
			fmt.Fprint(w, `{"apiVersion": "v1", "kind": "Pod", `+pods[1:])
		case strings.HasSuffix(path, "/pods"):
			fmt.Fprint(w, `{"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "kube-scheduler-master", "namespace": "kube-system",
				"labels": {"component": "kube-scheduler"}}, "spec": {"hostNetwork": true, "nodeName": "master"}}]}`)
		case strings.HasSuffix(path, "/portforward"):
			forwarded = path
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "message": "cannot create pods/portforward", "reason": "Forbidden", "code": 403}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "reason": "NotFound", "code": 404}`)
		}
	}))
	defer api.Close()
	top := func() string {
		status, _, err := berth("", "top", "--kubeconfig", kubeconfigFor(t, api.URL))
		if status != exitInvalid {
			t.Errorf("exit status %d", status)
		}
		return err
	}
	if err := top(); forwarded != "/api/v1/namespaces/kube-system/pods/berth-7f9/portforward" || !strings.Contains(err, "cannot create pods/portforward") {
		t.Errorf("forwarded to %q: %s", forwarded, err)
	}
	holder, says = "master_b1c2", "master_b1c2"
	if top(); forwarded != "/api/v1/namespaces/kube-system/pods/kube-scheduler-master/portforward" {
		t.Errorf("forwarded to %q", forwarded)
	}
	holder, says = "laptop_b1c2", "laptop_b1c2"
	if err := top(); !strings.Contains(err, "held by laptop_b1c2, which is no pod there; if the scheduler runs outside the cluster, give --daemon URL") {
		t.Error(err)
	}
	for _, says = range []string{"", "berth-7f9_b1c2"} { // kube-scheduler keeps what Berth said before it
		forwarded = ""
		if err := top(); forwarded != "" || !strings.Contains(err, "the lease kube-system/kube-scheduler is held by laptop_b1c2: the holder has not named the certificate of its endpoint (annotation berth.dev/serving-certificates): it is kube-scheduler, an older berth-scheduler, or one without an endpoint; give --daemon URL") {
			t.Errorf("said by %q: forwarded to %q, %s", says, forwarded, err)
		}
	}
	holder = ""
	if err := top(); !strings.Contains(err, "nobody holds the lease kube-system/berth-scheduler or kube-system/kube-scheduler; if it runs with --leader-elect=false or outside the cluster, give --daemon URL") {
		t.Error(err)
	}
}

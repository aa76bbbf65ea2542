package tool

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/pin"
)

// The leader is asked through a tunnel to its pod, with the credentials of the
// kubeconfig, at the port that the pod's flags say.
func TestThroughTheTunnel(t *testing.T) {
	asked := 0
	leader := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if got := r.Header.Get("Authorization"); got != "Bearer secret" {
			t.Errorf("asked with %q", got)
		}
		switch {
		case r.URL.Path == api.Prefix+"summary":
			_ = json.NewEncoder(w).Encode(api.Summary{Head: api.Head{APIVersion: api.Version, Kind: "Summary"}, Leader: "berth-7f9_b1c2", Time: noon, Nodes: 1})
		case r.URL.Path == api.Prefix+"why" && r.URL.Query().Get("pod") == "shop/cart":
			w.Header().Set(api.VerdictHeader, "Waiting")
			fmt.Fprint(w, "shop/cart waits\n")
		}
	}))
	defer leader.Close()
	certificate := leader.Certificate().Raw
	ports := make(chan string, 8)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/pods/berth-7f9/portforward") {
			tunnel(t, w, r, leader.Listener.Addr().String(), ports)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "/leases/berth-scheduler"):
			_ = json.NewEncoder(w).Encode(leaseOf("berth-7f9_b1c2", "berth-7f9_b1c2", certificate))
		case strings.HasSuffix(path, "/pods/berth-7f9"):
			fmt.Fprint(w, `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "berth-7f9", "namespace": "kube-system"}, "spec": {"containers": [{"args": ["--secure-port=10300"]}]}}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, kubeconfig, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: secret}}]}`, server.URL))
	if status, out, err := berth("", "top", "--kubeconfig", kubeconfig); status != 0 || !strings.Contains(out, "LEADER   berth-7f9_b1c2") || !strings.Contains(out, "1 node, 0 pods on them") {
		t.Errorf("top: %d %q %q", status, out, err)
	}
	if status, out, err := berth("", "why", "shop/cart", "--daemon", "auto", "--kubeconfig", kubeconfig); status != exitWaiting || out != "shop/cart waits\n" {
		t.Errorf("why: %d %q %q", status, out, err)
	}
	// That the API server is not verified does not hold for a URL.
	if status, _, err := berth("", "top", "--daemon", leader.URL, "--kubeconfig", kubeconfig); status != exitInvalid || !strings.Contains(err, "--daemon-ca") {
		t.Errorf("an unknown certificate: %d %q", status, err)
	}
	// A server that the tunnel reaches in the leader's place is not asked either.
	certificate = []byte("another")
	if status, _, err := berth("", "top", "--kubeconfig", kubeconfig); status != exitInvalid || !strings.Contains(err, "the certificate is not one that the lease's holder berth-7f9_b1c2 has named") {
		t.Errorf("another's certificate: %d %q", status, err)
	}
	if asked != 2 {
		t.Errorf("%d questions were asked, want 2", asked)
	}
	if port := <-ports; port != "10300" {
		t.Errorf("forwarded to port %s", port)
	}
}

// A leader of another namespace than its lease's is known by its certificate: its pod leads, and
// its namespace has the replicas.
func TestStatusThroughTheTunnel(t *testing.T) {
	leader := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(statusOfDaemon()) }))
	defer leader.Close()
	a := teamA()
	a.leases = nil
	a.set("kube-system/kube-scheduler", "mine-1_1", "mine-1_1", 0)
	if err := pin.Write(a.leases["kube-system/kube-scheduler"], [][]byte{leader.Certificate().Raw}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/team-a/pods/mine-1/portforward") {
			tunnel(t, w, r, leader.Listener.Addr().String(), make(chan string, 8))
			return
		}
		a.ServeHTTP(w, r)
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, kubeconfig, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: secret}}]}`, server.URL))
	_, out, err := berth("", "status", "--kubeconfig", kubeconfig)
	if want := "REPLICAS   team-a/mine-1 on n1: ready, leads\n           team-a/mine-2 on n1: ready\n"; !strings.Contains(out, want) || !strings.Contains(out, "ASKED") {
		t.Errorf("no %q in %s%s", want, out, err)
	}
}

// tunnel plays the kubelet: each pair of streams is a connection to the address.
func tunnel(t *testing.T, w http.ResponseWriter, r *http.Request, address string, ports chan<- string) {
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		t.Error(err)
		return
	}
	errors := map[string]httpstream.Stream{} // by request
	streams := make(chan httpstream.Stream, 16)
	c := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if c == nil {
		t.Error("no upgrade")
		return
	}
	defer func() { _ = c.Close() }()
	for {
		select {
		case s := <-streams:
			id := s.Headers().Get(v1.PortForwardRequestIDHeader)
			if s.Headers().Get(v1.StreamType) == v1.StreamTypeError {
				errors[id] = s
				continue
			}
			ports <- s.Headers().Get(v1.PortHeader)
			go join(t, s, errors[id], address)
		case <-c.CloseChan():
			return
		}
	}
}

// join is one connection: what comes from either side goes to the other.
func join(t *testing.T, s, failed httpstream.Stream, address string) {
	to, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	_ = failed.Close() // nothing failed
	go func() {
		_, _ = io.Copy(to, s) // until the client ends it
		_ = to.Close()
	}()
	_, _ = io.Copy(s, to)
	_ = s.Close()
}

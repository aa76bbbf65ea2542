package attack

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

var serverAttacks = []Attack{
	{Name: "server/redirects", Short: true,
		Title: "an API server and a daemon that lead the tool, with its credentials, elsewhere", play: redirects},
	{Name: "server/endless", Title: "an API server whose lists and leases do not end, unfold or drip", play: endlessServer},
	{Name: "server/controls", Short: true,
		Title: "an API server whose names, errors and warnings have control characters", play: controlServer},
}

// silent takes what the servers say of broken connections.
var silent = log.New(io.Discard, "", 0)

// serve starts a hostile server and returns its URL and its authority.
func (s *stage) serve(tls bool, h http.HandlerFunc) (at string, ca []byte) {
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = silent
	if tls {
		server.StartTLS()
		ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	} else {
		server.Start()
	}
	s.finally(func() { server.CloseClientConnections(); server.Close() })
	return server.URL, ca
}

// token is what nobody but the server of the kubeconfig may see.
const token = "s3cret-of-the-kubeconfig"

// redirects answers every request with a redirect: to a plain server, and to another
// name.
func redirects(s *stage) {
	var mu sync.Mutex
	var seen []string
	catch := func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Authorization"), token) {
			mu.Lock()
			seen = append(seen, fmt.Sprintf("%s %s://%s%s", r.Method, map[bool]string{true: "https", false: "http"}[r.TLS != nil], r.Host, r.URL.Path))
			mu.Unlock()
		}
		_, _ = io.WriteString(w, "{}")
	}
	plainAt, _ := s.serve(false, catch)
	otherAt, _ := s.serve(true, catch)
	for _, to := range []string{plainAt, strings.Replace(otherAt, "127.0.0.1", "localhost", 1)} {
		at, _ := s.serve(true, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, to+r.URL.Path, http.StatusTemporaryRedirect)
		})
		s.callAll(s.kubeconfig("led.kubeconfig", at, nil, token), at) // no authority: the certificate for another name passes
	}
	if len(seen) > 0 {
		s.broke("the token of the kubeconfig was sent elsewhere: %s", seen[0])
	}
}

// callAll runs the tool: it reads a cluster, and asks a daemon.
func (s *stage) callAll(kubeconfig, daemon string) {
	file := []string{"--kubeconfig", kubeconfig}
	asks := append(file, "--daemon", daemon, "--insecure-skip-tls-verify")
	for _, call := range [][]string{with(file, "simulate"), with(file, "why", "a/b"), with(file, "top", "--once"), with(file, "status"), with(asks, "top", "--once"), with(asks, "status"),
		with(asks, "events", "a/b"), with(asks, "why", "a/b"), with(file, "record", "--for", "1s", "--to", s.dir+"/record")} {
		if a := s.berth(call...); a.status == 0 {
			s.broke("berth %v: exit status 0: %s", call[0], short(a.stdout))
		}
	}
}

// between starts a server between the tool and the API server. It changes some answers.
func (s *stage) between(tls bool, change func(w http.ResponseWriter, r *http.Request) (done bool)) (at string, ca []byte) {
	config := s.lab.AdminConfig()
	target, err := url.Parse(config.Host)
	s.note(err)
	transport, err := rest.TransportFor(config)
	s.note(err)
	forward := &httputil.ReverseProxy{Transport: transport, ErrorLog: silent, Rewrite: func(out *httputil.ProxyRequest) {
		out.SetURL(target)
		out.Out.Header.Del("Authorization")
	}}
	return s.serve(tls, func(w http.ResponseWriter, r *http.Request) {
		if !change(w, r) {
			forward.ServeHTTP(w, r)
		}
	})
}

// endlessServer lists nodes or pods without end, each time in another way.
func endlessServer(s *stage) {
	const begin = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`
	item := strings.Repeat(`{"metadata":{"name":"p","namespace":"n","uid":"u"},"spec":{"containers":[{"name":"c","image":"i"}]}},`, 100)
	ways := map[string]func(http.ResponseWriter, *http.Request){
		"items":   func(w http.ResponseWriter, r *http.Request) { pourJSON(w, r, begin, item) },
		"unfolds": func(w http.ResponseWriter, _ *http.Request) { unfold(w, begin, item) },
		"drips":   func(w http.ResponseWriter, r *http.Request) { drip(w, r, begin[:20]) },
		"pages": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":"more"},"items":[%s]}`, strings.TrimSuffix(item, ","))
		},
		"silent": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}
	const lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
	var calls [][]string
	for name, answer := range ways { // any order: all of them
		for call, path := range map[string]string{"simulate": "/api/v1/pods", "status": "/api/v1/namespaces/kube-system/pods", "status --lease " + pinnedLease: lease} { // any order
			at, ca := s.between(true, func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.URL.Path == path && !r.URL.Query().Has("watch"):
					answer(w, r)
				case r.URL.Path == lease:
					w.Header().Set("Content-Type", "application/json")
					_ = json.NewEncoder(w).Encode(pinned("node-1_id"))
				default:
					return false
				}
				return true
			})
			file := s.kubeconfig(fmt.Sprintf("%s-%d.kubeconfig", name, len(calls)), at, ca, token)
			calls = append(calls, append(strings.Fields(call), "--kubeconfig", file))
		}
	}
	s.trusting = true
	s.calls(calls, func(call []string, a answer) {
		if a.status == 0 {
			s.broke("berth %v: exit status 0: %s", call, short(a.stdout))
		}
	})
}

// controlServer says hostile things wherever an API server says something.
func controlServer(s *stage) {
	said := strings.ReplaceAll(hostile, "\n", " ")
	quoted := fmt.Sprintf("%q", said)
	quoted = strings.NewReplacer(`\x1b`, `\u001b`, `\a`, `\u0007`, `\x07`, `\u0007`).Replace(quoted)
	answers := map[string]string{
		"error": fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%s,"message":%s,"code":500,"details":{"name":%s,"kind":%s,"causes":[{"reason":%s,"message":%s,"field":%s}]}}`,
			quoted, quoted, quoted, quoted, quoted, quoted, quoted),
		"nodes": fmt.Sprintf(`{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":%s,"labels":{%s:%s}},"spec":{"taints":[{"key":%s,"value":%s,"effect":"NoSchedule"}]},"status":{"allocatable":{"cpu":"1","pods":"10"},"images":[{"names":[%s]}]}}]}`,
			quoted, quoted, quoted, quoted, quoted, quoted),
		"text": said,
	}
	s.create(1, func(int) *corev1.Pod { return newPod(target, "waits", "1k") })
	for name, body := range answers { // any order: all of them
		at, ca := s.between(true, func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Warning", "299 - \"warned \u009b31m\u0085\"") // HTTP takes no C0 there
			if r.URL.Path != "/api/v1/nodes" {
				return false
			}
			if name != "text" {
				w.Header().Set("Content-Type", "application/json")
			}
			if name != "nodes" {
				w.WriteHeader(http.StatusInternalServerError)
			}
			_, _ = io.WriteString(w, body)
			return true
		})
		file := s.kubeconfig(name+".kubeconfig", at, ca, token)
		for _, call := range [][]string{{"simulate", "-o", "wide"}, {"why", target + "/waits"}, {"what-if", "drain", "x"}, {"fit"}} {
			a := s.berth(append(call, "--kubeconfig", file)...)
			if name != "nodes" && a.status == 0 {
				s.broke("berth %s of a server that fails: exit status 0: %s", call[0], short(a.stdout))
			}
		}
	}
}

package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// through starts a proxy before a server, and returns it with a client of it.
func through(t *testing.T, serve http.HandlerFunc) (*Proxy, *http.Client) {
	t.Helper()
	upstream := httptest.NewTLSServer(serve)
	t.Cleanup(upstream.Close)
	certificate, key := pair(t)
	p, err := Start(&rest.Config{Host: upstream.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return p, &http.Client{Transport: transport}
}

// pair writes a certificate for 127.0.0.1 that signs itself.
func pair(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("proxy.crt", "CERTIFICATE", der), write("proxy.key", "EC PRIVATE KEY", secret)
}

func posts(r *http.Request) bool { return r.Method == http.MethodPost }

// Each fault does to a request what its name says.
func TestFaults(t *testing.T) {
	var served atomic.Int32
	p, client := through(t, func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		w.WriteHeader(http.StatusCreated)
	})
	tests := []struct {
		name   string
		fault  Fault
		status int // 0: no reply
		served bool
		noted  Exchange
	}{
		{"none", Fault{On: func(*http.Request) bool { return false }, Status: 500}, 201, true,
			Exchange{Method: "POST", Path: "/x", Status: 201, Forwarded: true}},
		{"refused", Fault{On: posts, Status: 429}, 429, false, Exchange{Method: "POST", Path: "/x", Status: 429}},
		{"reply lost", Fault{On: posts, LoseReply: true}, 0, true,
			Exchange{Method: "POST", Path: "/x", Status: 201, Forwarded: true, Lost: true}},
	}
	for _, test := range tests {
		served.Store(0)
		heal := p.Inject(test.fault)
		noted := func(e Exchange) bool { e.Came = time.Time{}; return e == test.noted }
		before := p.Count(noted)
		reply, err := client.Post(p.URL+"/x", "", nil)
		heal()
		status := 0
		if err == nil {
			status = reply.StatusCode
			reply.Body.Close()
		}
		if status != test.status || (served.Load() > 0) != test.served {
			t.Errorf("%s: status %d, served %t, want %d, %t (%v)", test.name, status, served.Load() > 0, test.status, test.served, err)
		}
		if n := p.Count(noted) - before; n != 1 {
			t.Errorf("%s: noted %d times, want once: %+v", test.name, n, test.noted)
		}
	}
}

// A frozen watch passes nothing on until it is healed, though it was under way
// before, and then all of it.
func TestFreeze(t *testing.T) {
	next := make(chan string)
	p, client := through(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			return
		}
		for text := range next {
			io.WriteString(w, text)
			w.(http.Flusher).Flush()
		}
	})
	read := make(chan string)
	go func() {
		defer close(read)
		reply, err := client.Get(p.URL + "/watch")
		if err != nil {
			t.Error(err)
			return
		}
		defer reply.Body.Close()
		buffer := make([]byte, 16)
		for {
			n, err := reply.Body.Read(buffer)
			if n > 0 {
				read <- string(buffer[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	next <- "one"
	if got := <-read; got != "one" {
		t.Fatalf("read %q", got)
	}
	arrived := make(chan struct{}, 1)
	heal := p.Inject(Fault{Freeze: true, On: func(r *http.Request) bool {
		if r.URL.Path == "/watch" {
			arrived <- struct{}{}
		}
		return r.URL.Path == "/watch"
	}})
	next <- "two"
	<-arrived // "two" has, and stands before the gate
	for range 10 {
		reply, err := client.Post(p.URL+"/other", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
	}
	select {
	case got := <-read:
		t.Fatalf("read %q through the frost", got)
	default:
	}
	heal()
	if got := <-read; got != "two" {
		t.Errorf("read %q after it, want two", got)
	}
	close(next)
	if got, more := <-read; more {
		t.Errorf("read %q more", got)
	}
}

// A request that is swallowed gets no answer and does not reach the server; when
// the fault is healed its connection breaks. One that is delayed goes through.
func TestSwallowAndDelay(t *testing.T) {
	var served atomic.Int32
	p, client := through(t, func(http.ResponseWriter, *http.Request) { served.Add(1) })
	arrived := make(chan struct{}, 1)
	heal := p.Inject(Fault{Swallow: true, On: func(*http.Request) bool { arrived <- struct{}{}; return true }})
	ended := make(chan error)
	go func() {
		reply, err := client.Post(p.URL+"/x", "", nil)
		if err == nil {
			reply.Body.Close()
		}
		ended <- err
	}()
	<-arrived
	heal()
	if err := <-ended; err == nil || served.Load() != 0 {
		t.Errorf("swallowed: error %v, served %d times", err, served.Load())
	}
	heal = p.Inject(Fault{Delay: time.Hour, On: func(*http.Request) bool { arrived <- struct{}{}; return true }})
	go func() {
		reply, err := client.Post(p.URL+"/x", "", nil)
		if err == nil {
			reply.Body.Close()
		}
		ended <- err
	}()
	<-arrived
	heal()
	if err := <-ended; err != nil || served.Load() != 1 {
		t.Errorf("delayed: error %v, served %d times", err, served.Load())
	}
}

// Lists are answered as they were when they were taken, and a watch that would
// begin with one is refused.
func TestListsAreAnsweredAsTheyWereTaken(t *testing.T) {
	var now atomic.Value
	now.Store("before")
	p, client := through(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, now.Load().(string)) })
	lists, err := p.Lists(t.Context(), "/api/v1/pods")
	if err != nil {
		t.Fatal(err)
	}
	now.Store("now")
	defer p.Inject(Fault{Lists: lists, On: func(*http.Request) bool { return true }})()
	for path, want := range map[string]string{
		"/api/v1/pods":                         "200 before",
		"/api/v1/pods?watch=true":              "200 now",
		"/api/v1/pods?sendInitialEvents=true":  "422 ",
		"/api/v1/nodes":                        "200 now",
		"/api/v1/namespaces/default/pods/same": "200 now",
	} {
		reply, err := client.Get(p.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if got := fmt.Sprintf("%d %s", reply.StatusCode, body); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
	}
}

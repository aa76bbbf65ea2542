package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

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
		before := p.Count(func(e Exchange) bool { return e == test.noted })
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
		if n := p.Count(func(e Exchange) bool { return e == test.noted }) - before; n != 1 {
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

package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/util/cert"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// network is a listener without buffers: what nobody reads is never written.
type network struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}
func (n *network) Close() error   { close(n.closed); return nil }
func (n *network) Addr() net.Addr { return &net.TCPAddr{} }

// from is a connection from an address.
type from struct {
	net.Conn
	address string
}

func (c *from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.address), Port: 1} }

// deaf is a connection that reads nothing once it is told so.
type deaf struct {
	net.Conn
	told   *atomic.Bool
	closed chan struct{}
}

func (c *deaf) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.told.Load() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

// endpoint is one that runs, behind a chain that takes the header User for who asks.
type endpoint struct {
	*testing.T
	network *network
	running atomic.Int32 // answers of /metrics/resources and /berth/ that are being written
	most    atomic.Int32 // of them at once
	dialed  atomic.Int32
	deaf    atomic.Bool // clients read nothing more
	ended   chan string // what /berth/own saw
}

var certificate, key, _ = cert.GenerateSelfSignedCertKey("scheduler", nil, nil)

// newEndpoint starts an endpoint whose resources and answers below /berth/ are large.
func newEndpoint(t *testing.T) *endpoint {
	e := &endpoint{T: t, network: &network{make(chan net.Conn), make(chan struct{})}, ended: make(chan string, 1)}
	content, err := dynamiccertificates.NewStaticCertKeyContent("test", certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	large := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/berth/own" {
			e.own(w)
			return
		}
		e.most.Store(max(e.most.Load(), e.running.Add(1)))
		defer e.running.Add(-1)
		for range 10_000 {
			if _, err := w.Write(bytes.Repeat([]byte("berth "), 1000)); err != nil {
				return
			}
		}
	})
	s, err := Start(Secure{
		Serving: &apiserver.SecureServingInfo{Listener: e.network, Cert: content},
		Authentication: apiserver.AuthenticationInfo{Authenticator: authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
			name := r.Header.Get("User")
			return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, true, nil
		})},
		Authorization: apiserver.AuthorizationInfo{Authorizer: authorizerfactory.NewAlwaysAllowAuthorizer()},
	}, Options{
		Config:  func() *configv1.KubeSchedulerConfiguration { return configuration(true) },
		Refresh: func() {}, Leads: func() bool { return true }, Resources: large, Berth: large,
	}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return e
}

// own writes an answer with deadlines of its own, as a stream does.
func (e *endpoint) own(w http.ResponseWriter) {
	began, control := time.Now(), http.NewResponseController(w)
	for {
		err := control.SetWriteDeadline(time.Now().Add(5 * time.Second))
		if err == nil {
			if _, err = w.Write(make([]byte, 10_000)); err == nil {
				continue
			}
			err = nil
		}
		e.ended <- fmt.Sprint(time.Since(began), err)
		return
	}
}

// dial connects from an address.
func (e *endpoint) dial(address, protocol string) *tls.Conn {
	client, server := net.Pipe()
	e.network.conns <- &from{server, address}
	e.dialed.Add(1)
	c := &deaf{client, &e.deaf, make(chan struct{})}
	e.Cleanup(func() { close(c.closed); client.Close() })
	return tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
}

// request writes a request of HTTP/1.1 and reads nothing.
func request(c net.Conn, path, user string) {
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: s\r\nUser: %s\r\n\r\n", path, user)
}

// ask answers a request on a connection of its own.
func (e *endpoint) ask(address, path, user string) (code int, body string) {
	e.Helper()
	c := e.dial(address, "http/1.1")
	defer c.Close()
	request(c, path, user)
	reply, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		e.Fatalf("%s: %v", path, err)
	}
	read, _ := io.ReadAll(io.LimitReader(reply.Body, 100))
	return reply.StatusCode, string(read)
}

// client returns a client of HTTP/2 that keeps 64 KiB of an answer that nobody reads.
func (e *endpoint) client(address string) *http.Client {
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	t := &http.Transport{
		DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return e.dial(address, "h2"), nil },
		HTTP2:          &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10},
		Protocols:      protocols,
	}
	e.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t}
}

// send sends requests of a user in the background, and reads no answer.
func (e *endpoint) send(c *http.Client, n int, path, user string) {
	for range n {
		r, _ := http.NewRequest(http.MethodGet, "https://s"+path, nil)
		r.Header.Set("User", user)
		go func() {
			if reply, err := c.Do(r); err == nil {
				e.Cleanup(func() { reply.Body.Close() })
			}
		}()
	}
}

// slow are clients that send requests and read no answer. Those of HTTP/2 read the frames
// and grant no window, or not even read.
var slow = map[string]func(e *endpoint, n int, path string){
	"HTTP/1.1": func(e *endpoint, n int, path string) {
		for range n {
			go request(e.dial("10.0.0.1", "http/1.1"), path, "slow")
		}
	},
	"HTTP/2, no window": func(e *endpoint, n int, path string) { e.send(e.client("10.0.0.1"), n, path, "slow") },
	"HTTP/2, deaf": func(e *endpoint, n int, path string) {
		c := e.client("10.0.0.1")
		e.send(c, 1, "/livez", "")
		synctest.Wait()
		e.deaf.Store(true)
		e.send(c, n, path, "slow")
		synctest.Wait()
		e.deaf.Store(false) // for others
	},
}

// Clients that ask for a large answer and never read hold a bounded number of places, on
// one protocol or the other, leave half of them to others, and lose theirs within a minute.
func TestSlowReadersAreGivenUp(t *testing.T) {
	for name, slow := range slow {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEndpoint(t)
				slow(e, 20, "/metrics/resources")
				time.Sleep(time.Second)
				if n := e.running.Load(); n != mostMetrics/2 {
					t.Errorf("%d answers to one client are under way, want %d", n, mostMetrics/2)
				}
				for path, want := range map[string]string{"/metrics": "#", "/livez": "ok", "/readyz": "ok", "/metrics/resources": "berth"} {
					if code, body := e.ask("10.0.0.2", path, "quick"); code != 200 || !strings.HasPrefix(body, want) {
						t.Errorf("%s for another: %d %q", path, code, body)
					}
				}
				time.Sleep(2*answerTime + placeTime)
				if n, most := e.running.Load(), e.most.Load(); n != 0 || most > mostMetrics/2+1 {
					t.Errorf("%d answers are under way after a while, %d were at once", n, most)
				}
			})
		})
	}
}

// Through all that wraps it a handler can set deadlines of its own, which end what nobody
// reads, and which are not prolonged.
func TestHandlersSetTheirOwnDeadlines(t *testing.T) {
	for name, slow := range slow {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEndpoint(t)
				slow(e, 1, "/berth/own")
				// A connection is closed in 5 s where nothing can be written, and one of HTTP/2
				// that takes nothing does not even take the end of a stream.
				want := map[string]string{"HTTP/1.1": "10s <nil>", "HTTP/2, no window": "5s <nil>", "HTTP/2, deaf": "35s <nil>"}[name]
				if got := <-e.ended; got != want {
					t.Errorf("the answer ended after %s, want %s", got, want)
				}
			})
		})
	}
}

// One address has a bounded number of requests under way, on connections with a bounded
// number of streams each. Others are served meanwhile.
func TestRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(t)
		c := e.client("10.0.0.1")
		e.send(c, 1, "/berth/", "slow")
		synctest.Wait()
		e.send(c, mostStreams, "/berth/", "slow")
		synctest.Wait()
		if n := e.dialed.Load(); n != 2 {
			t.Errorf("%d connections for %d streams, want 2", n, mostStreams+1)
		}
		for range mostRequests / mostStreams {
			e.send(c, mostStreams, "/berth/", "slow")
			synctest.Wait()
		}
		if n := e.running.Load(); n != mostRequests/2 {
			t.Errorf("%d requests of one address are under way, want %d", n, mostRequests/2)
		}
		for address, want := range map[string]int{"10.0.0.1": 429, "10.0.0.2": 200} {
			if code, body := e.ask(address, "/configz", "quick"); code != want {
				t.Errorf("%s: %d %s, want %d", address, code, body, want)
			}
			if code, body := e.ask(address, "/livez", ""); code != 200 {
				t.Errorf("%s: a probe: %d %s", address, code, body)
			}
		}
	})
}

// A probe gets in whoever holds all connections, and a connection that idles loses its
// place to it. One from another address stays.
func TestProbesAlwaysGetIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(t)
		mine := e.dial("10.0.0.3", "http/1.1")
		if err := mine.Handshake(); err != nil {
			t.Fatal(err)
		}
		var others []*tls.Conn
		for range mostConnections {
			c := e.dial("10.0.0.1", "http/1.1")
			others = append(others, c)
			if err := c.Handshake(); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			if code, body := e.ask("10.0.0.2", "/livez", ""); code != 200 || body != "ok" {
				t.Errorf("probe: %d %q", code, body)
			}
		}
		closed := false
		go func() {
			_, _ = others[0].Read(make([]byte, 1))
			closed = true
		}()
		if synctest.Wait(); !closed {
			t.Error("the oldest connection is still open")
		}
		request(mine, "/readyz", "")
		if reply, err := http.ReadResponse(bufio.NewReader(mine), nil); err != nil || reply.StatusCode != 200 {
			t.Errorf("the only connection of another address: %v, %v", reply, err)
		}
	})
}

// A profile for as long as the client likes ends after ten minutes.
func TestProfilesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		placed(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })).
			ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/debug/pprof/profile?seconds=100000", nil))
		if took := time.Since(began); took != requestTime {
			t.Errorf("it took %s", took)
		}
	})
}

// Requests that are too large are refused at once, by their size.
func TestLargeRequestsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(t)
		for name, test := range map[string]struct {
			method, path, body string
			header             int
			code               int
		}{
			"a usual one":          {http.MethodGet, "/configz", "", 10, 200},
			"a large header":       {http.MethodGet, "/livez", "", 2 * mostHeaderBytes, 431},
			"a body of a GET":      {http.MethodGet, "/livez", "x", 10, 413},
			"a body of a POST":     {http.MethodPost, "/berth/v1/records", "x", 10, 413},
			"a large body":         {http.MethodPut, "/debug/flags/v", strings.Repeat("1", mostBodyBytes+1), 10, 413},
			"the verbosity is set": {http.MethodPut, "/debug/flags/v", "0", 10, 200},
		} {
			for _, h2 := range []bool{false, true} {
				c := e.client("10.0.0.1")
				if !h2 {
					c.Transport.(*http.Transport).Protocols = nil
					c.Transport.(*http.Transport).DialTLSContext = func(context.Context, string, string) (net.Conn, error) { return e.dial("10.0.0.1", "http/1.1"), nil }
				}
				r, _ := http.NewRequest(test.method, "https://s"+test.path, strings.NewReader(test.body))
				r.Header.Set("Large", strings.Repeat("x", test.header))
				if reply, err := c.Get("https://s/livez"); err == nil { // the connection is up
					reply.Body.Close()
				}
				reply, err := c.Do(r)
				if h2 && test.code == 431 {
					if err == nil || !strings.Contains(err.Error(), "larger than peer's advertised limit") {
						t.Errorf("%s, HTTP/2: %v %v, want the client to know the limit", name, reply, err)
					}
					continue
				}
				if err != nil || reply.StatusCode != test.code || h2 != (reply.ProtoMajor == 2) {
					t.Errorf("%s, HTTP/2 %t: %v %v, want %d", name, h2, reply, err, test.code)
				}
				if err == nil {
					reply.Body.Close()
				}
				c.CloseIdleConnections()
			}
		}
	})
}

package kube

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/core/machine"
)

// pipes is a network in memory between clients and one server. It can lose all that
// the connections of now carry, without closing them.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	close    func()

	mu   sync.Mutex
	made []*pipe
}

// pipe is the client's end of a connection.
type pipe struct {
	net.Conn
	silent, ended chan struct{}
	end           func()
}

func newPipes() *pipes {
	n := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
	n.close = sync.OnceFunc(func() { close(n.closed) })
	return n
}

func (n *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-n.accepted:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *pipes) Close() error {
	n.close()
	return nil
}

func (n *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }

func (n *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	c := &pipe{Conn: client, silent: make(chan struct{}), ended: make(chan struct{})}
	c.end = sync.OnceFunc(func() { close(c.ended) })
	n.mu.Lock()
	n.made = append(n.made, c)
	n.mu.Unlock()
	select {
	case n.accepted <- server:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// silence makes all connections of now half-open.
func (n *pipes) silence() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.made {
		close(c.silent)
	}
	n.made = nil
}

// cut closes all connections of now.
func (n *pipes) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.made {
		_ = c.Close()
	}
}

func (c *pipe) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	select {
	case <-c.silent:
		<-c.ended
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (c *pipe) Write(b []byte) (int, error) {
	select {
	case <-c.silent:
		return len(b), nil
	default:
		return c.Conn.Write(b)
	}
}

func (c *pipe) Close() error {
	c.end()
	return c.Conn.Close()
}

// slowBinder is an API server over HTTP/2 that answers bindings after a while.
func slowBinder(network *pipes, takes time.Duration) *httptest.Server {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			answer(w, 200, apiPod(path.Base(r.URL.Path), "node"))
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-time.After(takes):
			answer(w, 201, nil)
		case <-r.Context().Done():
		}
	}))
	_ = s.Listener.Close()
	s.Listener, s.EnableHTTP2, s.Config.ErrorLog = network, true, log.New(io.Discard, "", 0)
	s.StartTLS()
	return s
}

// executorOverPipes returns an executor whose connections are checked as the daemon's are.
func executorOverPipes(t *testing.T, takes time.Duration) (*Executor, chan machine.Event, *pipes) {
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "")
	if err := DetectSilentConnections(); err != nil {
		t.Fatal(err)
	}
	network := newPipes()
	s := slowBinder(network, takes)
	config := &rest.Config{Host: "https://127.0.0.1", QPS: -1, Dial: network.dial, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	t.Cleanup(func() {
		network.cut()
		s.Close()
		time.Sleep(time.Second) // until readers that pause have seen the end
	})
	h, outcomes := executorOn(t, config, always)
	return h, outcomes, network
}

// A binding on a connection that went silent is given up as lost within four seconds,
// and a read on a new connection tells what became of it. A binding that takes longer
// on a connection that answers is waited for.
func TestSilentConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, outcomes, network := executorOverPipes(t, 20*time.Second)
		start := time.Now()
		h.Do(machine.Bind{Pod: testPod("slow"), Node: "node"})
		if e := (<-outcomes).(machine.BindReply); e.Result != machine.BindDone || time.Since(start) < 20*time.Second {
			t.Fatalf("a slow binding: %v (%v) after %s", e.Result, e.Err, time.Since(start))
		}
		h.Do(machine.ReadPod{Pod: testPod("slow")}) // so that this connection is there, too
		<-outcomes

		start = time.Now()
		h.Do(machine.Bind{Pod: testPod("lost"), Node: "node"})
		synctest.Wait()
		network.silence()
		e := (<-outcomes).(machine.BindReply)
		if took := time.Since(start); e.Result != machine.BindUnknown || took > silentAfter+pongWithin+time.Second/10 {
			t.Errorf("a binding on a silent connection: %v (%v) after %s, want an unknown one within 4s", e.Result, e.Err, took)
		}
		h.Do(machine.ReadPod{Pod: testPod("lost")})
		read := (<-outcomes).(machine.ReadReply)
		if took := time.Since(start); read.Err != nil || took > 6*time.Second {
			t.Errorf("the read: %v after %s, want the pod within 6s", read.Err, took)
		}
	})
}

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// Connections to the API server go silent while pods come and are bound: nobody is told,
// nothing comes through, and new connections work. Every pod is bound, once, by the same
// leader. How long it takes is logged.
func TestHalfOpenConnections(t *testing.T) {
	const round = 100
	f := newField(t, "half-open")
	f.sameNodes(10, "64", 110)
	holders := f.watchLease()
	upstream, err := clientcmd.BuildConfigFromFlags("", f.cluster.Kubeconfig(cluster.Berth))
	if err != nil {
		t.Fatal(err)
	}
	path := newSilentPath(t, upstream.Host)
	f.berth(cluster.SchedulerOptions{LeaderElect: true, Flags: []string{"--master=https://" + path.Addr().String()}})
	f.create(f.podsOf("before", round, "1")...)
	f.awaitBound(round)

	pods := round
	for i, silence := range []string{"while nothing happens", "while pods are bound"} {
		if i == 0 {
			path.silence()
		}
		begin := time.Now()
		f.background("pods "+silence, f.podsOf(fmt.Sprint("round-", i), round, "1"))
		if i == 1 {
			f.await("some of them to be bound", func() string { return missing(min(bound(f.seen("")), pods+1), pods+1) })
			begin = time.Now()
			path.silence()
		}
		pods += round
		f.awaitBound(pods)
		t.Logf("connections go silent %s: all %d pods are bound after %s", silence, round, time.Since(begin).Round(time.Millisecond))
	}
	if path.silenced.Load() == 0 {
		t.Error("no connection went silent")
	}
	if seen := holders.seen(); len(seen) != 1 {
		t.Errorf("holders of the lease: %q, want one", seen)
	}
	f.awaitScheduledOnce()
	f.checkRoom()
}

// silentPath passes connections on to a server, until they are to be silent.
type silentPath struct {
	net.Listener
	server   string
	silenced atomic.Int64 // connections

	mu    sync.Mutex
	quiet chan struct{} // closed when the connections of now go silent
	open  []net.Conn    // both ends of all
}

func newSilentPath(t *testing.T, server string) *silentPath {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &silentPath{Listener: l, server: to.Host, quiet: make(chan struct{})}
	t.Cleanup(p.end)
	go p.accept()
	return p
}

// silence has all connections that are there pass nothing on from now on. They stay open.
func (p *silentPath) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.quiet)
	p.quiet = make(chan struct{})
}

// end closes all, so that the server need not wait for anybody.
func (p *silentPath) end() {
	p.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		c.Close()
	}
}

func (p *silentPath) accept() {
	for {
		client, err := p.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		quiet := p.quiet
		p.open = append(p.open, client, server)
		p.mu.Unlock()
		go p.pass(client, server, quiet)
		go p.pass(server, client, quiet)
	}
}

// pass copies what one end says until it ends, and drops it once the path is quiet.
func (p *silentPath) pass(from, to net.Conn, quiet chan struct{}) {
	buffer := make([]byte, 32<<10)
	counted := false
	for {
		n, err := from.Read(buffer)
		select {
		case <-quiet:
			if !counted {
				p.silenced.Add(1)
				counted = true
			}
			if err != nil {
				return // the other end hears nothing of it
			}
			continue
		default:
		}
		if n > 0 {
			_, _ = to.Write(buffer[:n])
		}
		if err != nil {
			if err != io.EOF {
				from.Close()
			}
			to.Close()
			return
		}
	}
}

package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/client-go/rest"
)

// Fault is what happens to some requests. The zero Fault except for On does
// nothing to them.
type Fault struct {
	// On says which requests it strikes.
	On func(*http.Request) bool
	// Status, when it is not 0, is answered in the server's place: the request
	// is not forwarded.
	Status int
	// LoseReply lets the request take effect and then breaks the client's
	// connection instead of passing the reply on.
	LoseReply bool
	// Freeze holds back all bodies of replies, those under way too, until the
	// fault is healed.
	Freeze bool
	// Delay is how long the request is held before it is forwarded.
	Delay time.Duration
	// Swallow neither forwards the request nor answers it, until the fault is
	// healed; then the connection breaks. With a condition on r.RemoteAddr it is
	// a half-open connection.
	Swallow bool
	// Lists are answered in the server's place, by path: states of before, as
	// Proxy.Lists took them. A watch that would begin with such a list is refused,
	// so that clients fall back to lists.
	Lists map[string][]byte
}

// Exchange is a request and what became of it.
type Exchange struct {
	Method, Path string
	// Status is the server's, or the fault's that answered in its place; 0 when
	// the server could not be reached.
	Status int
	// Forwarded: the server has seen the request.
	Forwarded bool
	// Lost: the client has not seen the reply.
	Lost bool
	// FlowSchema is the UID of the one that the server has put the request under.
	FlowSchema string
	// Came is when the proxy got the request.
	Came time.Time
}

// Proxy is a running proxy. Its methods may be called from any goroutine.
type Proxy struct {
	// URL is where clients find it.
	URL string

	target    *url.URL
	transport http.RoundTripper
	server    *http.Server

	mu        sync.Mutex
	faults    []*fault
	exchanges []Exchange
}

type fault struct {
	Fault
	healed chan struct{}
}

// Start starts a proxy on any free port of 127.0.0.1. upstream is the server
// and the identity to have there; certificate and key are the files that
// clients are shown.
func Start(upstream *rest.Config, certificate, key string) (*Proxy, error) {
	target, err := url.Parse(upstream.Host)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	transport, err := rest.TransportFor(upstream)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &Proxy{URL: "https://" + listener.Addr().String(), target: target, transport: transport}
	p.server = &http.Server{
		Handler:   http.HandlerFunc(p.serve),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}},
		ErrorLog:  silent,
	}
	go p.server.ServeTLS(listener, "", "")
	return p, nil
}

// Close breaks all connections off and ends the proxy.
func (p *Proxy) Close() error { return p.server.Close() }

// Inject lets a fault strike from now on, until heal is called. Of several
// faults on one request the one that was injected first strikes.
func (p *Proxy) Inject(f Fault) (heal func()) {
	injected := &fault{Fault: f, healed: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, injected)
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.faults = slices.DeleteFunc(p.faults, func(f *fault) bool { return f == injected })
		close(injected.healed)
	})
}

// Count is how many exchanges so far are of a kind.
func (p *Proxy) Count(kind func(Exchange) bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, e := range p.exchanges {
		if kind(e) {
			n++
		}
	}
	return n
}

// Exchanges are all exchanges so far, in the order in which they ended.
func (p *Proxy) Exchanges() []Exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.exchanges)
}

// Lists asks the server for the lists at some paths, for Fault.Lists.
func (p *Proxy) Lists(ctx context.Context, paths ...string) (map[string][]byte, error) {
	client := http.Client{Transport: p.transport}
	lists := map[string][]byte{}
	for _, path := range paths {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.target.JoinPath(path).String(), nil)
		if err != nil {
			return nil, err
		}
		reply, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err == nil && reply.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", path, reply.Status)
		}
		if err != nil {
			return nil, err
		}
		lists[path] = body
	}
	return lists, nil
}

func (p *Proxy) note(e Exchange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exchanges = append(p.exchanges, e)
}

// find is the first fault on the request of those that are wanted, or nil.
func (p *Proxy) find(r *http.Request, wanted func(Fault) bool) *fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.faults {
		if wanted(f.Fault) && f.On(r) {
			return f
		}
	}
	return nil
}

// silent takes what the servers say of broken connections: these are what the
// proxy is for.
var silent = log.New(io.Discard, "", 0)

var errLost = errors.New("the reply is lost")

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	exchange := Exchange{Method: r.Method, Path: r.URL.Path, Came: time.Now()}
	p.hold(r)
	if p.answerOld(w, r) {
		return
	}
	struck := p.find(r, func(f Fault) bool { return f.Status != 0 || f.LoseReply })
	if struck != nil && struck.Status != 0 {
		exchange.Status = struck.Status
		p.note(exchange)
		refuse(w, struck.Status)
		return
	}
	forward := httputil.ReverseProxy{
		Transport:     p.transport,
		Rewrite:       func(out *httputil.ProxyRequest) { out.SetURL(p.target) },
		FlushInterval: -1, // a watch event is passed on when it comes
		ErrorLog:      silent,
		ModifyResponse: func(reply *http.Response) error {
			exchange.Status, exchange.Forwarded, exchange.Lost = reply.StatusCode, true, struck != nil
			exchange.FlowSchema = reply.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)
			p.note(exchange)
			if struck != nil {
				reply.Body.Close()
				return errLost
			}
			reply.Body = &gate{ReadCloser: reply.Body, wait: func() { p.thaw(r) }}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			if !errors.Is(err, errLost) {
				exchange.Lost = true
				p.note(exchange)
			}
			panic(http.ErrAbortHandler) // breaks the connection, or in HTTP/2 the stream
		},
	}
	forward.ServeHTTP(w, r)
}

// hold waits as long as the faults want that delay or swallow the request.
func (p *Proxy) hold(r *http.Request) {
	if f := p.find(r, func(f Fault) bool { return f.Swallow }); f != nil {
		wait(r.Context(), f.healed)
		panic(http.ErrAbortHandler)
	}
	if f := p.find(r, func(f Fault) bool { return f.Delay > 0 }); f != nil {
		held, cancel := context.WithTimeout(r.Context(), f.Delay)
		wait(held, f.healed)
		cancel()
	}
}

// answerOld answers a list by a state of before, where a fault has one.
func (p *Proxy) answerOld(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	f := p.find(r, func(f Fault) bool { return f.Lists[r.URL.Path] != nil })
	query := r.URL.Query()
	switch {
	case f == nil:
		return false
	case query.Get("sendInitialEvents") == "true":
		refuse(w, http.StatusUnprocessableEntity)
	case query.Get("watch") != "":
		return false
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(f.Lists[r.URL.Path]) // a client that has gone needs no list
	}
	return true
}

// refuse answers as an API server does that cannot serve a request.
func refuse(w http.ResponseWriter, status int) {
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"a fault of the proxy","code":%d}`, status)
}

// thaw waits until nothing freezes the request, or the client has gone.
func (p *Proxy) thaw(r *http.Request) {
	for {
		f := p.find(r, func(f Fault) bool { return f.Freeze })
		if f == nil {
			return
		}
		if !wait(r.Context(), f.healed) {
			return
		}
	}
}

func wait(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// gate is a body whose bytes come through when wait returns.
type gate struct {
	io.ReadCloser
	wait func()
}

func (g *gate) Read(b []byte) (int, error) {
	n, err := g.ReadCloser.Read(b)
	g.wait()
	return n, err
}

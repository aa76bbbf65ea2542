package page

import (
	"context"
	"net"
	"net/http"
	"net/url"

	"github.com/berth-scheduler/berth/edge/api"
)

// Local returns the data of a handler in this process, which stands for a daemon until the context
// ends.
func Local(ctx context.Context, h http.Handler) Data {
	l := &memory{conns: make(chan net.Conn), closed: ctx.Done()}
	server := &http.Server{Handler: h, ReadHeaderTimeout: readTime, BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() { _ = server.Serve(l) }() // until l ends
	transport := &http.Transport{DialContext: l.dial, DisableCompression: true}
	client := &http.Client{Transport: transport}
	context.AfterFunc(ctx, func() {
		_ = server.Close() // nobody asks any more
		transport.CloseIdleConnections()
	})
	return func(ctx context.Context, what string, query map[string][]string, header http.Header) (*http.Response, error) {
		to := url.URL{Scheme: "http", Host: "local", Path: api.Prefix + what, RawQuery: url.Values(query).Encode()}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
		if err != nil {
			return nil, err
		}
		for name := range header {
			request.Header.Set(name, header.Get(name))
		}
		return client.Do(request)
	}
}

// memory is a listener whose connections stay in this process.
type memory struct {
	conns  chan net.Conn
	closed <-chan struct{}
}

func (m *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case m.conns <- far:
		return near, nil
	case <-m.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept is for net.Listener.
func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

// Close is for net.Listener.
func (m *memory) Close() error { return nil }

// Addr is for net.Listener.
func (m *memory) Addr() net.Addr { return &net.UnixAddr{Name: "local", Net: "pipe"} }

package apiserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Do has a handler answer a request without a network between them. An answer
// that has an end comes whole, at once; a watch is answered in the background,
// until the client closes the body or the context ends.
func Do(h http.Handler, r *http.Request) *http.Response {
	w := &writer{header: http.Header{}, begun: make(chan struct{}), body: NewBody()}
	if !Watches(r) {
		h.ServeHTTP(w, r)
		w.end()
		return w.response(r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	w.body.closed = cancel
	go func() {
		defer cancel()
		h.ServeHTTP(w, r.WithContext(ctx))
		w.end()
	}()
	<-w.begun
	return w.response(r)
}

// writer is the answer on its way.
type writer struct {
	header http.Header
	code   int
	begun  chan struct{} // closed with the header
	body   *Body
}

func (w *writer) Header() http.Header { return w.header }

func (w *writer) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
		close(w.begun)
	}
}

func (w *writer) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

func (w *writer) Flush() {}

func (w *writer) end() {
	w.WriteHeader(http.StatusOK)
	w.body.End(io.EOF)
}

func (w *writer) response(r *http.Request) *http.Response {
	return &http.Response{StatusCode: w.code, Status: http.StatusText(w.code), Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: w.header.Clone(), Body: w.body, ContentLength: -1, Request: r}
}

// Body is what has been answered and not been read yet. A writer never waits.
type Body struct {
	mu     sync.Mutex
	more   sync.Cond
	data   []byte
	err    error // after the data
	closed func()
}

var errClosed = errors.New("the client has closed the body")

// NewBody returns an empty body.
func NewBody() *Body {
	b := &Body{}
	b.more.L = &b.mu
	return b
}

// Write adds to the body.
func (b *Body) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	b.data = append(b.data, data...)
	b.more.Broadcast()
	return len(data), nil
}

// End ends the body after what was written, with an error for who reads. The
// first end counts.
func (b *Body) End(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	b.more.Broadcast()
}

// Read waits for something to read.
func (b *Body) Read(into []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.data) == 0 && b.err == nil {
		b.more.Wait()
	}
	n := copy(into, b.data)
	b.data = b.data[n:]
	if n == 0 {
		return 0, b.err
	}
	return n, nil
}

// Close says that nobody reads any more.
func (b *Body) Close() error {
	b.End(errClosed)
	if b.closed != nil {
		b.closed()
	}
	return nil
}

// Watches tells whether the request is a watch.
func Watches(r *http.Request) bool { return strings.Contains(r.URL.RawQuery, "watch=") }

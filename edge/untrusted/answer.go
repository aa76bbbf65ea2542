package untrusted

import (
	"io"
	"net/http"
	"sync/atomic"
)

// Answers wraps a way to a server: its answers have at most that many bytes, all of them
// together. Then they break off with an error.
func Answers(most int64) func(http.RoundTripper) http.RoundTripper {
	left := new(atomic.Int64)
	left.Store(most)
	return func(way http.RoundTripper) http.RoundTripper { return &answers{way, most, left} }
}

type answers struct {
	http.RoundTripper
	most int64
	left *atomic.Int64
}

// RoundTrip is for http.RoundTripper.
func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	reply, err := a.RoundTripper.RoundTrip(r)
	if err == nil {
		reply.Body = &answer{reply.Body, a}
	}
	return reply, err
}

// WrappedRoundTripper is for client-go, which looks for the way that ends a request.
func (a *answers) WrappedRoundTripper() http.RoundTripper { return a.RoundTripper }

// answer is the body of an answer.
type answer struct {
	io.ReadCloser
	of *answers
}

// Read is for io.Reader.
func (b *answer) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.of.left.Add(int64(-n)) < 0 {
		return 0, tooLong(b.of.most)
	}
	return n, err
}

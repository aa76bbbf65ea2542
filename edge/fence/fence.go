// Package fence keeps requests from being sent by a scheduler whose lease may have run
// out. A connection that is made, or has no stream to give, may take seconds: what is
// checked before is not true any more. So the body of a request begins only while the
// lease is held. A request without its body is none: the server gets no end of it.
package fence

import (
	"errors"
	"io"
)

// ErrNotLeading is why a request is not sent when the lease is no longer sure.
var ErrNotLeading = errors.New("not sent: this scheduler does not hold the lease")

// Body is the body of a request that begins only while held says so.
func Body(body io.ReadCloser, held func() bool) io.ReadCloser {
	return &fenced{ReadCloser: body, held: held}
}

type fenced struct {
	io.ReadCloser
	held  func() bool
	begun bool
}

func (b *fenced) Read(into []byte) (int, error) {
	if !b.begun && !b.held() {
		return 0, ErrNotLeading
	}
	b.begun = true
	return b.ReadCloser.Read(into)
}

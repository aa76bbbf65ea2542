package shadow

import (
	"fmt"
	"net/http"
)

// ReadOnly lets through only what reads. A shadow has nothing to write; this is for
// plugins that have a connection of their own.
func ReadOnly(next http.RoundTripper) http.RoundTripper { return readOnly{next} }

type readOnly struct{ next http.RoundTripper }

// RoundTrip refuses whatever may write, and sends the rest on.
func (r readOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	if m := request.Method; m != http.MethodGet && m != http.MethodHead {
		return nil, fmt.Errorf("not sent: %s %s: a shadow only reads", m, request.URL.Path)
	}
	return r.next.RoundTrip(request)
}

// WrappedRoundTripper is what requests go on to, for client-go.
func (r readOnly) WrappedRoundTripper() http.RoundTripper { return r.next }

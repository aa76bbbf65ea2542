package untrusted

import (
	"fmt"
	"net/http"
)

// NoRedirects wraps a way to a server: an answer that is a redirect is an error, which
// says where to. client-go would send the credentials to that address, too.
func NoRedirects(way http.RoundTripper) http.RoundTripper { return noRedirects{way} }

type noRedirects struct{ http.RoundTripper }

// RoundTrip is for http.RoundTripper.
func (n noRedirects) RoundTrip(r *http.Request) (*http.Response, error) {
	reply, err := n.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	to := reply.Header.Get("Location")
	if reply.StatusCode < 300 || reply.StatusCode > 399 || to == "" {
		return reply, nil
	}
	_ = reply.Body.Close()
	return nil, fmt.Errorf("the answer is a redirect (%d) to %q, which is not followed: the credentials are for %s alone; give the server's own address", reply.StatusCode, to, r.URL.Host)
}

// WrappedRoundTripper is for client-go, which looks for the way that ends a request.
func (n noRedirects) WrappedRoundTripper() http.RoundTripper { return n.RoundTripper }

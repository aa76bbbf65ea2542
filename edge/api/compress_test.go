package api

import (
	"compress/gzip"
	"io"
	"net/http"
	"testing"
)

// Whoever takes gzip gets the same answer in it, a refusal and a stream included; others get it as
// it is.
func TestAnswersAreCompressed(t *testing.T) {
	f := stuck(t)
	get := func(path, accept string) (*http.Response, string) {
		r, _ := http.NewRequest(http.MethodGet, f.server.URL+Prefix+path, nil)
		if accept != "" {
			r.Header.Set("Accept-Encoding", accept)
		}
		reply, err := (&http.Transport{DisableCompression: true}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		var body io.Reader = reply.Body
		if reply.Header.Get("Content-Encoding") == "gzip" {
			if body, err = gzip.NewReader(body); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
		if path == "watch?since=1h" { // which does not end
			body = io.LimitReader(body, 500)
		}
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatalf("%s, %q: %v", path, accept, err)
		}
		return reply, string(text)
	}
	for _, path := range []string{"records", "pending", "summary", "nodes", "why?pod=shop/big&output=text", "blockers?pod=shop/big", "why/all", "status", "watch?since=1h", "records?limit=x"} {
		_, want := get(path, "")
		for accept, zipped := range map[string]bool{"": false, "gzip": true, "br;q=1.0, GZIP;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0, br": false, "gzip;q=x": false, "identity": false, "x-gzip": false} {
			reply, got := get(path, accept)
			if is := reply.Header.Get("Content-Encoding") == "gzip"; is != zipped || got != want || reply.Header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s, %q: in gzip %t, want %t; %d bytes, want %d:\n%s\n%s", path, accept, is, zipped, len(got), len(want), got, want)
			}
		}
	}
}

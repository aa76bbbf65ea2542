package page

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
)

// When its context ends, nothing is left of what stood for a daemon.
func TestLocalEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine stays
		ctx, stop := context.WithCancel(context.Background())
		data := Local(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }))
		reply, err := data(t.Context(), "summary", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(reply.Body); err != nil || string(body) != "/berth/v1/summary" {
			t.Errorf("%s %v", body, err)
		}
		_ = reply.Body.Close()
		stop()
	})
}

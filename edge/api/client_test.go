package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/profile"
)

// A question whose client goes ends before the search for an answer, and the next one is
// answered.
func TestWhyEndsWithItsClient(t *testing.T) {
	f := stuck(t)
	var gone context.CancelFunc
	f.options.Profiles = func() ([]*profile.Profile, error) {
		gone()
		return newProfiles()
	}
	handler := Handler(f.options)
	for _, path := range []string{"why?pod=shop/big", "blockers?pod=shop/big", "why/all"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		gone = cancel
		for _, test := range []struct {
			client string
			ctx    context.Context
			code   int
		}{{"that goes", ctx, http.StatusInternalServerError}, {"that stays", t.Context(), http.StatusOK}} {
			reply := httptest.NewRecorder()
			handler.ServeHTTP(reply, httptest.NewRequestWithContext(test.ctx, http.MethodGet, Prefix+path, nil))
			if reply.Code != test.code {
				t.Errorf("%s of a client %s: %d: %.300s", path, test.client, reply.Code, reply.Body)
			}
		}
	}
}

// A question to which there is no answer in time is refused in words.
func TestNoAnswerInTime(t *testing.T) {
	reply := httptest.NewRecorder()
	refuse(reply, context.DeadlineExceeded)
	if reply.Code != http.StatusGatewayTimeout || !strings.Contains(reply.Body.String(), "no answer within 55s") {
		t.Errorf("%d: %s", reply.Code, reply.Body)
	}
}

package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/berth-scheduler/berth/edge/bounds"
)

// Bounds of what clients take of the endpoint. docs/security.md lists them.
const (
	mostConnections = 128
	mostStreams     = 16 // requests under way on one connection of HTTP/2, unless a flag says so
	mostRequests    = 256
	mostMetrics     = 4 // answers with metrics
	mostDebug       = 4 // answers with profiles, the configuration, flags and the status
	mostHeaderBytes = 32 << 10
	mostBodyBytes   = 1 << 10
	frameBytes      = 16 << 10 // of HTTP/2, and of a body that nobody has read yet

	stallTime   = 30 * time.Second // until a connection is closed that takes nothing
	answerTime  = time.Minute      // that an answer waits for its reader
	headerTime  = 10 * time.Second
	idleTime    = 90 * time.Second // kube-scheduler's
	bodyTime    = 10 * time.Second
	placeTime   = 10 * time.Second // that a request waits for a place
	requestTime = 10 * time.Minute
)

// admitted bounds requests before anybody knows who asks. Probes need no place: the three
// paths of health cost nothing unless they bring a token. What is below them is asked of the
// API server.
func admitted(h http.Handler) http.Handler {
	under := bounds.NewPlaces(mostRequests)
	return bounds.Timed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hasBody(r) {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // fails in tests only
			r.Body = http.MaxBytesReader(w, r.Body, mostBodyBytes)
		}
		if hasBody(r) && (r.Method != http.MethodPut || r.ContentLength > mostBodyBytes) {
			w.WriteHeader(http.StatusRequestEntityTooLarge) // only PUT has one: it sets the verbosity
			return
		}
		if !slices.Contains(healthRoots, r.URL.Path) || r.Header.Get("Authorization") != "" {
			giveBack, ok := under.Try(bounds.Client(r))
			if !ok {
				tooMany(w, under)
				return
			}
			defer giveBack()
		}
		h.ServeHTTP(w, r)
	}), answerTime)
}

// hasBody reports whether there is a body, of known length or not.
func hasBody(r *http.Request) bool { return r.ContentLength != 0 }

// placed holds a place for each answer until it is written. What is below /berth/ has
// places of its own.
func placed(h http.Handler) http.Handler {
	metrics, debug := bounds.NewPlaces(mostMetrics), bounds.NewPlaces(mostDebug)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		places := debug
		switch path := r.URL.Path; {
		case isHealth(path), strings.HasPrefix(path, "/berth/"):
			h.ServeHTTP(w, r)
			return
		case strings.HasPrefix(path, "/metrics"):
			places = metrics
		}
		waits, cancel := context.WithTimeout(r.Context(), placeTime)
		giveBack, err := places.Take(waits, bounds.Client(r))
		cancel()
		if err != nil {
			tooMany(w, places)
			return
		}
		defer giveBack()
		ctx, cancel := context.WithTimeout(r.Context(), requestTime)
		defer cancel()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

func tooMany(w http.ResponseWriter, p *bounds.Places) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, fmt.Sprintf("as many requests as may be are being answered, which is %d, or half of them for one client; ask again", p.Most()), http.StatusTooManyRequests)
}

// healthRoots are the paths that probes ask.
var healthRoots = []string{"/healthz", "/livez", "/readyz"}

// isHealth reports whether the path tells of health, in whole or of one check.
func isHealth(path string) bool {
	for _, root := range healthRoots {
		if path == root || strings.HasPrefix(path, root+"/") {
			return true
		}
	}
	return false
}

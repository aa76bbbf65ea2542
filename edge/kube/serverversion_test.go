package kube

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/logs/logstest"
)

// minor returns a version that is so many minor versions newer than this build.
func minor(newer int, patch string) string {
	return fmt.Sprintf("v%d.%d.%s", ownVersion.Major(), int(ownVersion.Minor())+newer, patch)
}

// versionAsked reads the version of a server that answers with the text, or forbids to ask if it is nil.
func versionAsked(t *testing.T, text *atomic.Pointer[string]) (*serverVersion, *logstest.Sink) {
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		if text := text.Load(); text != nil {
			_, _ = w.Write([]byte(*text))
			return
		}
		answer(w, http.StatusForbidden, nil)
	})
	clients, err := NewClients(s.config(), always)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(clients.Watch.(*rest.RESTClient).Client.CloseIdleConnections)
	sink := &logstest.Sink{}
	return newServerVersion(clients.Watch, klog.New(sink)), sink
}

// A server of this build's minor version, the next one or the one before is supported, no
// other one. Each
// change is logged once, as an error if the server is not supported.
func TestVersionsOfTheServer(t *testing.T) {
	var text atomic.Pointer[string]
	v, sink := versionAsked(t, &text)
	for _, c := range []struct {
		git       string
		newer     int
		supported bool
		lines     string
	}{
		{minor(0, "5"), 0, true, "V0"},
		{minor(0, "5"), 0, true, ""},
		{minor(1, "2"), 1, true, "V0"},
		{minor(1, "0-vendor.3+0abc"), 1, true, "V0"},
		{minor(2, "0-alpha.1"), 2, false, "E"},
		{minor(2, "0-alpha.1"), 2, false, ""},
		{minor(3, "0"), 3, false, "E"},
		{minor(0, "6"), 0, true, "V0"},
		{minor(-1, "9"), -1, true, "V0"},
		{minor(-2, "9"), -2, false, "E"},
	} {
		text.Store(new(fmt.Sprintf(`{"major":"1","gitVersion":%q,"new":{}}`, c.git)))
		if err := v.update(t.Context()); err != nil {
			t.Fatalf("%s: %v", c.git, err)
		}
		if got := *v.last.Load(); got.Git != c.git || got.Newer != c.newer || got.Supported() != c.supported {
			t.Errorf("%s: %+v", c.git, got)
		}
		levels := ""
		for _, l := range sink.Lines() {
			levels += l.Level
		}
		if levels != c.lines {
			t.Errorf("%s: lines %q, want %q", c.git, levels, c.lines)
		}
	}
}

// An answer that is no version changes nothing, whatever its size. It is asked for again,
// but not where the server refuses to tell.
func TestNoVersionOfTheServer(t *testing.T) {
	var text atomic.Pointer[string]
	v, _ := versionAsked(t, &text)
	text.Store(new(`{"gitVersion":"` + minor(0, "5") + `"}`))
	if err := v.update(t.Context()); err != nil {
		t.Fatal(err)
	}
	for answer, reason := range map[string]string{
		"":                                  "unexpected end of JSON",
		"<html>":                            "invalid character",
		"[1]":                               "cannot unmarshal array",
		`{"gitVersion":36}`:                 "cannot unmarshal number",
		`{}`:                                `could not parse "" as version`,
		`{"gitVersion":"master"}`:           `could not parse "master" as version`,
		`{"gitVersion":"v2.37.0"}`:          `"v2.37.0" is no version of Kubernetes 1`,
		`{"gitVersion":"v0.0.0-master"}`:    `"v0.0.0-master" is no version of Kubernetes 1`,
		`{"gitVersion":"v1.99999999999.0"}`: "is no version of Kubernetes 1",
		`{"gitVersion":"v1.37.0-` + strings.Repeat("x", 200) + `"}`:       "208 characters, more than 100",
		`{"gitVersion":"v1.37.0-` + strings.Repeat("x", 4<<20) + `"}`:     "unexpected end of JSON",
		`{"gitVersion":"v1.99999999999999999999999999999999999999999.0"}`: "value out of range",
	} {
		text.Store(&answer)
		if err := v.update(t.Context()); err == nil || !strings.Contains(err.Error(), reason) || len(err.Error()) > 300 || !mayPass(err) {
			t.Errorf("%.60s: error %v, want %q", answer, err, reason)
		}
		if got := v.last.Load().Git; got != minor(0, "5") || v.failed.Load() == nil {
			t.Errorf("%.60s: version %.60q, failed %v", answer, got, v.failed.Load())
		}
	}
	text.Store(nil)
	if err := v.update(t.Context()); err == nil || mayPass(err) {
		t.Errorf("forbidden: error %v", err)
	}
	text.Store(new(`{"gitVersion":"` + minor(0, "5") + `"}`))
	if err := v.update(t.Context()); err != nil || v.failed.Load() != nil {
		t.Errorf("read again: error %v, failed %v", err, v.failed.Load())
	}
}

// The version is read at the start, and again when the connections break off: another
// server may answer then.
func TestVersionAfterReconnect(t *testing.T) {
	var newer atomic.Int64
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		q := r.URL.Query()
		switch {
		case r.URL.Path == "/version":
			answer(w, 200, map[string]string{"gitVersion": minor(int(newer.Load()), "0")})
		case q.Has("sendInitialEvents"):
			answer(w, 422, nil)
		case q.Has("watch"):
			w.(http.Flusher).Flush() // the watch has begun
			<-r.Context().Done()
		default:
			answer(w, 200, noObjects)
		}
	})
	source, _ := watched(t, s, time.Hour, object.ResourceClaims)
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for n := range int64(3) {
		newer.Store(n)
		if n > 0 {
			s.CloseClientConnections()
		}
		for source.ServerVersion().Git != minor(int(n), "0") {
			select {
			case <-s.requests:
			case <-again.C:
			case <-t.Context().Done():
				t.Fatalf("version %+v", source.ServerVersion())
			}
		}
	}
}

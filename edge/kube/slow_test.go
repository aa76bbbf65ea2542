package kube

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/metrics"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// slowServer is what answers each request after a while, in virtual time.
type slowServer struct {
	takes time.Duration

	mu   sync.Mutex
	came []arrival
}

type arrival struct {
	method, path, timeout string
	at                    time.Time
}

func (s *slowServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.came = append(s.came, arrival{r.Method, r.URL.Path, r.URL.Query().Get("timeout"), time.Now()})
	s.mu.Unlock()
	select {
	case <-time.After(s.takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusCreated, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))}, nil
}

// requests counts by path.
func (s *slowServer) requests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := map[string]int{}
	for _, a := range s.came {
		n[a.path]++
	}
	return n
}

// executorOnSlow returns an executor at a server that takes so long for each request.
func executorOnSlow(t *testing.T, takes time.Duration, qps float32, burst int) (*Executor, chan machine.Event, *slowServer) {
	s := &slowServer{takes: takes}
	config := &rest.Config{Host: "http://server", Transport: s, QPS: qps, Burst: burst,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	h, outcomes := executorOn(t, config, always)
	return h, outcomes, s
}

func numbered(i int) *object.Pod {
	name := "p" + string(rune('0'+i/100)) + string(rune('0'+i/10%10)) + string(rune('0'+i%10))
	return &object.Pod{UID: types.UID(name), Namespace: "ns", Name: name}
}

// A server that takes long for each binding gets each of them once, and gets
// them without waiting for its answers. So do evictions.
func TestSlowServer(t *testing.T) {
	const pods = 200
	for _, takes := range []time.Duration{12 * time.Second, 30 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			h, outcomes, s := executorOnSlow(t, takes, -1, 0)
			start := time.Now()
			for i := range pods {
				h.Do(machine.Bind{Pod: numbered(i), Node: "node"})
			}
			for range pods {
				if e := (<-outcomes).(machine.BindReply); e.Result != machine.BindDone {
					t.Fatalf("%s: binding of %s: %v", takes, e.UID, e.Err)
				}
			}
			if took, limit := time.Since(start), takes+pods/bindWorkers*slowAfter; took > limit {
				t.Errorf("%d bindings of %s took %s, more than %s", pods, takes, took, limit)
			}
			if n := s.requests(); len(n) != pods || slices.Max(slices.Collect(maps.Values(n))) != 1 {
				t.Errorf("%s: requests %v, want one a pod", takes, n)
			}

			start = time.Now()
			for i := range pods {
				victim := numbered(i)
				victim.Disrupted = true
				h.Do(machine.Evict{Victim: victim, Preemptor: testPod("p")})
			}
			for range pods {
				if e := (<-outcomes).(machine.EvictReply); e.Err != nil {
					t.Fatalf("%s: eviction of %s: %v", takes, e.Victim, e.Err)
				}
			}
			if took, limit := time.Since(start), takes+pods/requestWorkers*slowAfter; took > limit {
				t.Errorf("%d evictions of %s took %s, more than %s", pods, takes, took, limit)
			}
		})
	}
}

// A server that never answers is given up after it has given up itself: it is
// told until when, and whether the pod is bound is not known.
func TestDeadServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, outcomes, s := executorOnSlow(t, time.Hour, -1, 0)
		start := time.Now()
		h.Do(machine.Bind{Pod: testPod("p"), Node: "node"})
		e := (<-outcomes).(machine.BindReply)
		if took := time.Since(start); e.Err == nil || took != requestTimeout {
			t.Errorf("got %v (%v) after %s, want an error after %s", e.Result, e.Err, took, requestTimeout)
		}
		if told := s.came[0].timeout; told != requestTimeout.String() {
			t.Errorf("the server was told %q, want %s", told, requestTimeout)
		}
	})
}

// What a request waits for the rate limiter is no part of its time, and makes
// no reply a lost one. rest_client_rate_limiter_duration_seconds tells of it.
func TestWaitForTheRateLimiter(t *testing.T) {
	const pods = 120
	var waits latencies
	defer func(was metrics.LatencyMetric) { metrics.RateLimiterLatency = was }(metrics.RateLimiterLatency)
	metrics.RateLimiterLatency = &waits
	synctest.Test(t, func(t *testing.T) {
		h, outcomes, s := executorOnSlow(t, 12*time.Second, 1, 1)
		start := time.Now()
		for i := range pods {
			h.Do(machine.Bind{Pod: numbered(i), Node: "node"})
		}
		for range pods {
			if e := (<-outcomes).(machine.BindReply); e.Result != machine.BindDone {
				t.Fatalf("binding of %s: %v", e.UID, e.Err)
			}
		}
		if took, want := time.Since(start).Round(time.Second), (pods-1)*time.Second+12*time.Second; took != want {
			t.Errorf("%d bindings took %s, want %s: one a second", pods, took, want)
		}
		if n := len(s.came); n != pods {
			t.Errorf("%d requests, want %d", n, pods)
		}
	})
	if waits.of["POST"] != pods || waits.longest < time.Minute {
		t.Errorf("the metric has the waits %v, the longest of %s; want %d of POST, the longest of a minute or more", waits.of, waits.longest, pods)
	}
}

// latencies is what a metric of client-go is told: how many by verb.
type latencies struct {
	sync.Mutex
	of      map[string]int
	longest time.Duration
}

func (l *latencies) Observe(_ context.Context, verb string, _ url.URL, took time.Duration) {
	l.Lock()
	defer l.Unlock()
	if l.of == nil {
		l.of = map[string]int{}
	}
	l.of[verb]++
	l.longest = max(l.longest, took)
}

// All requests share one rate; events have another, of the same size.
func TestOneRateForAllRequests(t *testing.T) {
	const each, burst = 20, 5
	synctest.Test(t, func(t *testing.T) {
		h, outcomes, s := executorOnSlow(t, time.Millisecond, 1, burst)
		for i := range each {
			pod := numbered(i)
			pod.Disrupted = true
			// Not by Do: events would wait for it.
			h.bindings.submit(func(ctx context.Context) { _, _ = h.bind(ctx, pod, "node") })
			h.Do(machine.Evict{Victim: pod, Preemptor: testPod("p")})
			h.Do(machine.PublishEvent{Pod: pod, Reason: "Scheduled"})
		}
		for range each {
			<-outcomes
		}
		start := s.came[0].at
		time.Sleep(time.Minute)
		last := map[bool]time.Duration{}
		count := map[bool]int{}
		for _, a := range s.came {
			event := strings.HasSuffix(a.path, "/events")
			last[event], count[event] = a.at.Sub(start).Round(time.Second), count[event]+1
		}
		if want := (2*each - burst) * time.Second; count[false] != 2*each || last[false] != want {
			t.Errorf("%d bindings and evictions in %s, want %d in %s", count[false], last[false], 2*each, want)
		}
		if want := (each - burst) * time.Second; count[true] != each || last[true] != want {
			t.Errorf("%d events in %s, want %d in %s", count[true], last[true], each, want)
		}
	})
}

// A worker in the queue of the rate limiter keeps its place; one whose request
// was sent gives it away, and does not take more than one when it comes back.
func TestPlacesAreGivenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(2, 0, time.Second)
		server := placesTransport{&slowServer{takes: 10 * time.Second}}
		running, most := 0, 0
		var mu sync.Mutex
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			running += n
			most = max(most, running)
		}
		start := time.Now()
		for i := range 8 {
			p.submit(func(ctx context.Context) {
				count(1)
				defer count(-1)
				if i < 4 {
					r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://server", nil)
					response, err := server.RoundTrip(r)
					if err != nil {
						t.Error(err)
						return
					}
					response.Body.Close()
				}
				time.Sleep(10 * time.Second) // for the rate limiter, say
			})
		}
		p.close(false)
		p.wait(t.Context())
		// At 0, 1 and 2 s two begin. Those of 2 s wait for the rate limiter, and
		// the first four come back: the last two have to wait until they are done.
		if took := time.Since(start); most != 6 || took != 31*time.Second {
			t.Errorf("%d at a time in %s, want 6 in 31s", most, took)
		}
	})
}

package kube

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/fence"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What a reply to a binding proves; the pod as a read shows it afterwards
// resolves conflicts.
func TestBindOutcome(t *testing.T) {
	const none = "" // the pod is not bound
	tests := []struct {
		name  string
		code  int // of the reply to the binding; 0 cuts the connection
		read  string
		gone  bool // the read finds no pod
		want  machine.BindResult
		tries int
	}{
		{name: "accepted", code: 201, want: machine.BindDone},
		{name: "malformed", code: 400, want: machine.BindRefused},
		{name: "unauthorized", code: 401, want: machine.BindRefused},
		{name: "forbidden", code: 403, want: machine.BindRefused},
		{name: "not found", code: 404, want: machine.BindRefused},
		{name: "invalid", code: 422, want: machine.BindRefused},
		{name: "conflict, bound to the node", code: 409, read: "node", want: machine.BindDone},
		{name: "conflict, bound elsewhere", code: 409, read: "other", want: machine.BindUnknown},
		{name: "conflict, not bound", code: 409, read: none, want: machine.BindRefused},
		{name: "conflict, gone", code: 409, gone: true, want: machine.BindRefused},
		{name: "request timeout", code: 408, want: machine.BindUnknown},
		{name: "internal error", code: 500, want: machine.BindUnknown},
		{name: "bad gateway", code: 502, want: machine.BindUnknown},
		{name: "unavailable", code: 503, want: machine.BindUnknown},
		{name: "gateway timeout", code: 504, want: machine.BindUnknown},
		{name: "connection cut", code: 0, want: machine.BindUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
				switch {
				case r.Method == http.MethodGet && tt.gone:
					answer(w, 404, nil)
				case r.Method == http.MethodGet:
					answer(w, 200, apiPod("p", tt.read))
				case tt.code == 0:
					conn, _, _ := http.NewResponseController(w).Hijack()
					conn.Close()
				default:
					w.Header().Set("Retry-After", "1") // must not make the client repeat the request
					answer(w, tt.code, nil)
				}
			})
			h, outcomes := executorOn(t, s.config(), always)
			h.Do(machine.Bind{Pod: testPod("p"), Node: "node"})
			got := (<-outcomes).(machine.BindReply)
			if got.Result != tt.want || got.UID != "uid-1" {
				t.Errorf("got %v (%v), want %v", got.Result, got.Err, tt.want)
			}
			if (got.Err == nil) != (tt.want == machine.BindDone) {
				t.Errorf("error %v does not go with result %v", got.Err, got.Result)
			}
			first := <-s.requests
			if first.Line != "POST /api/v1/namespaces/ns/pods/p/binding" || !strings.Contains(first.Body, `"uid":"uid-1"`) || !strings.Contains(first.Body, `"target":{"kind":"Node","name":"node"}`) {
				t.Errorf("sent %q %s", first.Line, first.Body)
			}
			for len(s.requests) > 0 {
				if r := <-s.requests; strings.HasPrefix(r.Line, "POST") {
					t.Errorf("the binding was repeated")
				}
			}
		})
	}
}

// A binding that the server turns away as too many is repeated.
func TestBindIsRepeatedWhenTurnedAway(t *testing.T) {
	busy := 1
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
		if busy > 0 {
			busy--
			answer(w, 429, nil)
			return
		}
		answer(w, 201, nil)
	})
	h, outcomes := executorOn(t, s.config(), always)
	h.Do(machine.Bind{Pod: testPod("p"), Node: "node"})
	if got := (<-outcomes).(machine.BindReply); got.Result != machine.BindDone {
		t.Errorf("got %v (%v)", got.Result, got.Err)
	}
}

// A binding is sent again while connections are refused, four times at most.
func TestBindIsRepeatedWhenRefused(t *testing.T) {
	for refusals, want := range map[int32]machine.BindResult{3: machine.BindDone, 4: machine.BindRefused} {
		s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) { answer(w, 201, nil) })
		config := s.config()
		var dials atomic.Int32
		config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if dials.Add(1) <= refusals {
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		}
		h, outcomes := executorOn(t, config, always)
		h.Do(machine.Bind{Pod: testPod("p"), Node: "node"})
		if got := (<-outcomes).(machine.BindReply); got.Result != want || dials.Load() != 4 {
			t.Errorf("refused %d times: got %v (%v) after %d connections", refusals, got.Result, got.Err, dials.Load())
		}
	}
}

// A request that never left proves that the pod was not bound.
func TestBindNotSent(t *testing.T) {
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) { answer(w, 201, nil) })
	unreachable := s.config()
	unreachable.Host = "http://127.0.0.1:1" // a port that the system gives to nobody

	h, outcomes := executorOn(t, unreachable, always)
	h.Do(machine.Bind{Pod: testPod("p"), Node: "node"})
	if got := (<-outcomes).(machine.BindReply); got.Result != machine.BindRefused {
		t.Errorf("unreachable: got %v (%v)", got.Result, got.Err)
	}

	h, outcomes = executorOn(t, s.config(), func() bool { return false })
	h.Do(machine.Bind{Pod: testPod("p"), Node: "node"})
	if got := (<-outcomes).(machine.BindReply); got.Result != machine.BindRefused || !errors.Is(got.Err, fence.ErrNotLeading) {
		t.Errorf("lease lost: got %v (%v)", got.Result, got.Err)
	}
	if len(s.requests) != 0 {
		t.Errorf("sent %v", <-s.requests)
	}
}

// Stop gives up on what hangs: whether that pod is bound is not known.
func TestStopGivesUp(t *testing.T) {
	release := make(chan struct{})
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) { <-release })
	h, outcomes := executorOn(t, s.config(), always)
	h.Do(machine.Bind{Pod: testPod("p"), Node: "node"})
	<-s.requests
	h.Stop(cancelled(), always)
	close(release)
	if got := (<-outcomes).(machine.BindReply); got.Result != machine.BindUnknown {
		t.Errorf("got %v (%v)", got.Result, got.Err)
	}
	h.Do(machine.Bind{Pod: testPod("q"), Node: "node"})
	h.Do(machine.ReadPod{Pod: testPod("q")})
	if len(outcomes) != 0 || len(s.requests) != 0 {
		t.Error("something was started after Stop")
	}
}

// How pods ended is read aside: an eviction does not wait for it.
func TestEvictionsDoNotWaitForEndedPods(t *testing.T) {
	release := make(chan struct{})
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
		if r.Method == http.MethodGet {
			<-release
		}
		answer(w, 200, apiPod("p", "node"))
	})
	h, outcomes := executorOn(t, s.config(), always)
	for range 2 * requestWorkers {
		h.Do(machine.ReadPod{Pod: testPod("p"), Ended: true})
	}
	if n := h.requests.waiting(); n != 0 {
		t.Errorf("%d of the reads stand before evictions", n)
	}
	h.Do(machine.Evict{Victim: testPod("q"), Preemptor: testPod("p")})
	if got, is := (<-outcomes).(machine.EvictReply); !is {
		t.Errorf("%v came before the eviction", got)
	}
	close(release)
	for range 2 * requestWorkers {
		<-outcomes
	}
}

// While a scheduler stops, a binding whose reply was lost is still read, and
// counts as unanswered until its outcome is reported.
func TestStopReadsWhatWasLost(t *testing.T) {
	hangUp := make(chan struct{})
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
		if r.Method == http.MethodGet {
			answer(w, 200, apiPod("p", "node"))
			return
		}
		<-hangUp
		panic(http.ErrAbortHandler)
	})
	h, outcomes := executorOn(t, s.config(), always)
	h.Do(machine.Bind{Pod: testPod("p"), Node: "node"})
	<-s.requests
	if n := h.Counters().Unanswered; n != 1 {
		t.Errorf("%d unanswered, want the one that was sent", n)
	}
	asked := make(chan struct{}) // whether all is known
	stopped := make(chan struct{})
	var read atomic.Bool
	go func() {
		defer close(stopped)
		h.Stop(t.Context(), func() bool { asked <- struct{}{}; return read.Load() })
	}()
	close(hangUp)
	if got := (<-outcomes).(machine.BindReply); got.Result != machine.BindUnknown {
		t.Fatalf("got %v (%v)", got.Result, got.Err)
	}
	<-asked
	h.Do(machine.ReadPod{Pod: testPod("p")})
	got := make(chan machine.Event, 1)
	go func() { got <- <-outcomes }()
	for done := false; !done; {
		select {
		case <-asked:
		case e := <-got:
			if e.(machine.ReadReply).Pod.NodeName != "node" || h.Counters().Unanswered != 0 {
				t.Errorf("got %+v, %d unanswered", e, h.Counters().Unanswered)
			}
			done = true
		}
	}
	<-asked
	read.Store(true)
	for {
		select {
		case <-asked:
		case <-stopped:
			return
		}
	}
}

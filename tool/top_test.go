package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/records"
)

// summaries is a daemon that answers with what the function returns; nil: it does not lead.
func summaries(t *testing.T, answer func() *api.Summary) func(context.Context) (*daemon, error) {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		out := answer()
		if out == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = json.NewEncoder(w).Encode(api.Problem{Head: api.Head{Kind: "Problem"}, Reason: api.NotLeading, Message: "this daemon does not lead: b does"})
			return
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(s.Close)
	base, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return func(context.Context) (*daemon, error) { return newDaemon(base, s.Client(), func() {}), nil }
}

func summaryOf(leader string) *api.Summary {
	return &api.Summary{Head: api.Head{APIVersion: api.Version, Kind: "Summary"}, Leader: leader, Time: noon}
}

// The view goes on with the next leader when the one that it asks leads no more, and says
// so. Until there is one it says whom it looks for. A first leader that cannot be found is
// an error.
func TestTopFollowsTheLeader(t *testing.T) {
	asked := 0
	first := summaries(t, func() *api.Summary {
		if asked++; asked > 1 {
			return nil
		}
		return summaryOf("a")
	})
	second := summaries(t, func() *api.Summary { return summaryOf("b") })
	dials := 0
	lead := &leader{dial: func(ctx context.Context) (*daemon, error) {
		switch dials++; dials {
		case 1:
			return first(ctx)
		case 2:
			return nil, errors.New("nobody holds the lease")
		}
		return second(ctx)
	}}
	ctx, cancel := context.WithCancel(t.Context())
	again := make(chan time.Time)
	var out bytes.Buffer
	var screens []string
	clear := func() error {
		screens = append(screens, out.String())
		out.Reset()
		return nil
	}
	call := &topCall{output: "text"}
	ended := make(chan error)
	go func() { ended <- call.refresh(ctx, lead, &out, again, clear) }()
	for range 4 {
		again <- noon
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	screens = append(screens[1:], out.String())
	for i, want := range []string{"LEADER   a ", "a does not answer; looking for who leads.\n127.0.0.1:", "nobody holds the lease", "a led until 12:00:00.\nLEADER   b "} {
		if !strings.Contains(screens[i], want) {
			t.Errorf("screen %d: %q, want %q", i, screens[i], want)
		}
	}
	none := &leader{dial: func(context.Context) (*daemon, error) { return nil, errors.New("nobody holds the lease") }}
	if err := call.refresh(t.Context(), none, &out, again, clear); err == nil {
		t.Error("nobody leads, and that is no error")
	}
}

// The view says how long bindings take, who evicts whom, what is refused, and whose pods
// each cause blocks.
func TestTopForOperators(t *testing.T) {
	s := summaryOf("a")
	s.Rates = records.Rates{Seconds: 60, Bound: 200, Evicted: 7, Binding: records.Times{Pods: 200, P50: 0.0123456, P99: 2.5},
		Preemptions: []records.Preemption{{For: "shop/vip", Node: "n1", Evicted: 7, Victims: []string{"infra/a", "infra/b"}}}}
	s.Refused = &api.Refusal{Time: noon, Reason: "profiles[0]: unknown plugin"}
	s.Others = &records.Others{Pods: 4, Names: 2, Schedulers: []records.OtherScheduler{{Name: "my-schduler", Pods: 3}, {Name: "volcano", Pods: 1}}, Profiles: []string{"default-scheduler"}}
	s.Blocking = []records.Blocking{{Plugin: "NodeResourcesFit", Reason: "Insufficient cpu", Pods: 40,
		Workloads: []records.Workload{{Name: "shop/web", Pods: 30}, {Name: "shop/api", Pods: 8}, {Name: "shop/x", Pods: 1}, {Name: "shop/y", Pods: 1}}}}
	text := summaryText(s)
	for _, want := range []string{
		"BINDING   p50 12.3ms, p99 2.5s, from the decision to the API server's confirmation",
		"EVICTED   7 pods for shop/vip: infra/a, infra/b and 5 more on n1",
		"OTHERS    4 pods ask for schedulers that are not this one: my-schduler 3, volcano 1 (this one is default-scheduler)",
		"CONFIG    refused at 2026-01-31T12:00:00Z, the previous one stays in effect: profiles[0]: unknown plugin",
		"  40  NodeResourcesFit  Insufficient cpu  shop/web 30, shop/api 8, shop/x 1, ...",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	s.Refused.Reason = ""
	if text := summaryText(s); !strings.Contains(text, "the right to get /readyz/configuration is needed to see why") {
		t.Errorf("a reason that may not be seen:\n%s", text)
	}
}

// Where nothing blocks a pod, the view says whether bindings take long.
func TestTopSaysThatBindingsAreSlow(t *testing.T) {
	for p99, want := range map[float64]string{
		3.2: "\nNothing blocks any pod that asks for this scheduler, but bindings take long (p99 3.2s): `berth status` says why.\n",
		0.9: "\nNothing blocks any pod that asks for this scheduler.\n",
	} {
		s := summaryOf("a")
		s.Rates.Binding = records.Times{Pods: 9, P50: p99 / 2, P99: p99}
		if text := summaryText(s); !strings.HasSuffix(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

package tool

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/records"
)

// attempted is an attempt at so many seconds after noon.
func attempted(pod string, seconds int) records.Record {
	return records.Record{Time: noon.Add(time.Duration(seconds) * time.Second), Type: records.Attempt, Pod: pod, Attempt: 1, Result: "Scheduled", Node: "n1"}
}

// streamed is what a played daemon streams: these events, and then nothing more.
type streamed string

// The decisions go on whole when another process leads: what is in its log comes, in the order of time, below a
// line that says that the scheduler restarted, or who leads. It does so when the stream is late, too.
func TestDecisionsAfterARestartInABrowser(t *testing.T) {
	event := func(kind, data string) string { return fmt.Sprintf("id: a-1\nevent: %s\ndata: %s\n\n", kind, data) }
	record := func(pod string, seconds int) string {
		return event("record", fmt.Sprintf(`{"time":%q,"type":"Attempt","pod":%q,"attempt":1,"result":"Scheduled","node":"n1"}`, noon.Add(time.Duration(seconds)*time.Second).Format(time.RFC3339Nano), pod))
	}
	log := func(list ...records.Record) *api.RecordList { return &api.RecordList{Records: list} }
	c, p := play(t, map[string]any{
		"capabilities": &api.Capabilities{Time: noon.Add(5 * time.Second), Identity: "vm_one", Leads: true},
		"records":      log(attempted("shop/a", 1)), "watch": streamed(record("shop/b", 2)),
	})
	shows := func(want string) {
		t.Helper()
		c.until(fmt.Sprintf(`[...document.querySelectorAll("[role=log] li")].map(l => l.querySelector("a")?.innerText ?? l.innerText).join("; ") === %q`, want))
	}
	c.route("#/decisions")
	shows("shop/b; shop/a")
	p.set(map[string]any{"records": &api.Problem{Head: api.Head{Kind: "Problem"}, Code: http.StatusServiceUnavailable, Reason: api.NotLeading, Message: "this daemon does not lead: vm_one does", Leader: "vm_one"}})
	p.breakStreams(&api.Problem{Head: api.Head{Kind: "Problem"}, Code: http.StatusServiceUnavailable, Reason: api.NotLeading, Message: "this daemon does not lead: vm_one does", Leader: "vm_one"})
	c.until(`document.querySelector("[aria-label=Connection]").innerText === "Not leading: vm_one"`)
	shows("shop/b; shop/a")
	p.set(map[string]any{"capabilities": &api.Capabilities{Time: noon.Add(20 * time.Second), Identity: "vm_two", Leads: true}, "records": log(attempted("shop/c", 12), attempted("shop/d", 13)),
		"watch": streamed(event("lost", `{"lost":0,"restarted":true,"leader":"vm_two","started":"2026-01-31T12:00:10Z"}`) + record("shop/d", 13) + record("shop/e", 14))})
	shows("shop/e; shop/d; shop/c; 2026-01-31 12:00:10 UTC The scheduler restarted; shop/b; shop/a")
	p.set(map[string]any{"records": log(attempted("shop/f", 21))})
	p.breakStreams(streamed(event("lost", `{"lost":0,"restarted":true,"leader":"other_1","started":"2026-01-31T11:00:00Z"}`)))
	c.until(`document.querySelector("[role=log]").innerText.includes("other_1 leads")`)
	c.until(`document.querySelector("[role=log]").innerText.includes("shop/f")`)
	c.quiet()
}

// stream writes the events, and keeps the stream open until it is ended.
func (s streamed) stream(w http.ResponseWriter, r *http.Request, closed <-chan struct{}) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "id: a-1\n: alive\n\n"+string(s))
	_ = http.NewResponseController(w).Flush()
	select {
	case <-r.Context().Done():
	case <-closed:
	}
}

// Why nobody answers is said once, above the view that asks again.
func TestOutagesAreSaidOnceInABrowser(t *testing.T) {
	c, p := play(t, nil)
	waits := &api.Problem{Head: api.Head{Kind: "Problem"}, Code: http.StatusServiceUnavailable, Reason: api.NotLeading, Message: "this daemon does not lead: berth-2 does", Leader: "berth-2"}
	p.set(map[string]any{"summary": waits, "pending": waits})
	p.breakStreams(waits)
	c.until(`document.querySelector("[aria-label=Connection]").innerText === "Not leading: berth-2"`)
	for _, hash := range []string{"#/queue", "#/"} {
		c.route(hash)
		c.until(`/Asking again (in \d+ s\.|…)/.test(document.querySelector("main").innerText) && document.querySelector("main").innerText.split("this daemon does not lead").length === 2`)
	}
}

// says waits until the server of the page answers a question with a message that has the parts.
func (v *viewed) says(code int, parts ...string) api.Problem {
	v.Helper()
	for end := time.Now().Add(patience); ; {
		var p api.Problem
		got := v.get("summary", &p)
		missing := slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return strings.Contains(p.Message, part) })
		if got == code && len(missing) == 0 {
			return p
		}
		if time.Now().After(end) {
			v.Fatalf("%d %+v: no %q", got, p, missing)
		}
	}
}

// leased sets the lease of a scheduler as it was renewed so many seconds ago, valid for 100.
func (s *smallCluster) leased(holder string, seconds int) {
	l := leaseOf(holder, holder, nil)
	valid, at := int32(100), metav1.MicroTime{Time: time.Now().Add(-time.Duration(seconds) * time.Second)}
	l.Namespace, l.Name, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = "kube-system", "kube-scheduler", &valid, &at
	s.leases = map[string]*coordinationv1.Lease{"kube-system/kube-scheduler": l}
}

// While nobody answers, the page says what the user's kubeconfig shows of that: the lease, the pods without a node,
// and what to do. What may not be read is said.
func TestViewOfASchedulerThatHangs(t *testing.T) {
	defer func(usual time.Duration) { reachTime = usual }(reachTime)
	reachTime = 10 * time.Millisecond
	for _, tt := range []struct {
		spoil func(*smallCluster)
		says  []string
	}{
		{func(s *smallCluster) { s.leased("master_1", 3700) }, []string{"does not answer: no connection came about in time; master_1 holds the lease kube-system/kube-scheduler, last renewed 1h1m4", ", and nobody took it since it ended 1h0m", "; 1 pod has no node; the scheduler hangs or is gone: restart it"}},
		{func(s *smallCluster) { s.leased("master_1", 60) }, []string{"; if that one is gone, another replica takes the lease in up to ", "; if there is none, restart the scheduler"}},
		{func(s *smallCluster) { s.leased("master_1", 0) }, []string{"; 1 pod has no node; by its lease it works"}},
		{func(s *smallCluster) { s.leased("", 0) }, []string{"; nobody holds the lease kube-system/kube-scheduler; 1 pod has no node; start a scheduler"}},
		{func(s *smallCluster) { s.leasesRefused = true }, []string{"; 1 pod has no node; the lease could not be read: leases are not for you"}},
	} {
		a := &smallCluster{}
		tt.spoil(a)
		server := httptest.NewServer(a)
		v := view(t, "--kubeconfig", kubeconfigFor(t, server.URL), "--daemon", hung(t), "--insecure-skip-tls-verify")
		if p := v.says(http.StatusBadGateway, tt.says...); p.Reason != unheard {
			t.Errorf("%+v", p)
		}
		server.Close()
	}
}

// A daemon that does not lead is said to wait for the lease of one that renews it no more.
func TestViewOfADaemonThatWaits(t *testing.T) {
	a := &smallCluster{}
	server := httptest.NewServer(a)
	defer server.Close()
	daemon := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/status") {
			_ = json.NewEncoder(w).Encode(api.Status{Head: api.Head{APIVersion: api.Version, Kind: "Status"}, Started: noon})
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = json.NewEncoder(w).Encode(api.Problem{Head: api.Head{Kind: "Problem"}, Code: 503, Reason: api.NotLeading, Message: "this daemon does not lead: dead_1 does", Leader: "dead_1"})
	}))
	defer daemon.Close()
	for seconds, says := range map[int]string{ // any order
		0:    "this daemon does not lead: dead_1 holds the lease kube-system/kube-scheduler, last renewed ",
		60:   "this daemon does not lead: it waits for the lease of dead_1, which was last renewed 1m",
		3700: "this daemon does not lead: it waits for the lease of dead_1, which ended 1h0m",
	} {
		a.leased("dead_1", seconds)
		v := view(t, "--kubeconfig", kubeconfigFor(t, server.URL), "--daemon", daemon.URL, "--insecure-skip-tls-verify")
		if p := v.says(http.StatusServiceUnavailable, says, "; this daemon started at 2026-01-31T12:00:00Z"); p.Leader != "dead_1" || (seconds == 60) != strings.Contains(p.Message, " more)") {
			t.Errorf("%+v", p)
		}
	}
}

// The overview says that bindings take longer in the last minute than in the hour before, though only half of them do.
func TestSlowBindingsInABrowser(t *testing.T) {
	history := func(last ...float64) *api.History {
		const n = 36
		h := &api.History{Every: 5, Attempts: map[string][]int{}, Bound: make([]int, n), Evicted: make([]int, n), Queue: map[string][]int{}, Lost: make([]uint64, n)}
		for i := range n {
			took := 0.02
			if i >= n-12 {
				took = last[i%len(last)]
			}
			h.Times = append(h.Times, time.Now().Add(time.Duration(i-n)*5*time.Second))
			h.Binding.Pods, h.Binding.P50, h.Binding.P99 = append(h.Binding.Pods, 1+i%2), append(h.Binding.P50, took), append(h.Binding.P99, took)
		}
		return h
	}
	const slow = "Bindings are slow in the last minute: 1.00 s, where 0.02 s is usual."
	c, p := play(t, map[string]any{"history": history(0.02, 1)})
	c.says(slow)
	for _, last := range [][]float64{{0.09}, {0.02, 0.02, 0.02, 1}} {
		p.set(map[string]any{"history": history(last...)})
		c.route("#/queue")
		c.route("#/")
		c.says("Pods that wait: ")
		c.saysNot("Bindings are slow")
	}
	c.quiet()
}

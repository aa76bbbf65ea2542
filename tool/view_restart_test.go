package tool

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

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

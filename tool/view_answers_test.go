package tool

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/records"
)

// Pods of one workload with one message are one row that unfolds. The workloads of a cause lead to the
// queue narrowed to them, and the evicted pods to the decisions about them.
func TestAlikePodsAreOneRowInABrowser(t *testing.T) {
	now := time.Now()
	pending := func(pod, workload, message string, attempts int) api.PendingPod {
		return api.PendingPod{Pod: pod, Workload: workload, Place: "unschedulable", Since: now, Attempts: attempts, Message: message}
	}
	c, p := play(t, map[string]any{
		"summary": &api.Summary{Time: now, Nodes: 1, Queue: api.Queue{Unschedulable: 4}, Rates: records.Rates{Seconds: 60, Evicted: 2, Attempts: map[string]int{}},
			Blocking: []records.Blocking{{Plugin: "NodeResourcesFit", Reason: "Insufficient cpu", Pods: 4, Workloads: []records.Workload{{Name: "shop/huge", Pods: 3}, {Name: "shop/db", Pods: 1}}}}},
		"pending": &api.PendingList{Total: 9, Pods: []api.PendingPod{pending("shop/huge-1", "shop/huge", `no room for "a"`, 1), pending("shop/db-1", "shop/db", "no room", 1), pending("shop/huge-2", "shop/huge", `no room for "b"`, 7), pending("shop/huge-3", "shop/huge", "no zone", 1)}},
	})
	rows := func(want string) {
		t.Helper()
		c.until(fmt.Sprintf(`[...document.querySelectorAll("table[aria-label=Pods] tbody td:first-child")].map(x => x.innerText).join(", ") === %q`, want))
	}
	c.route("#/queue")
	rows("▸ 2 pods of shop/huge, shop/db-1, shop/huge-3")
	c.until(`document.querySelector("table[aria-label=Pods] tbody td:nth-child(4)").innerText === "7"`)
	c.says("And 5 more pods")
	c.eval(`document.querySelector("table[aria-label=Pods] button").click()`)
	rows("▾ 2 pods of shop/huge, shop/huge-1, shop/huge-2, shop/db-1, shop/huge-3")
	c.route("#/")
	c.until(`[...document.querySelectorAll("table[aria-label=Causes] a")].map(a => a.hash).join(" ") === "#/queue?place=&reason=Insufficient%20cpu #/queue?place=&reason=Insufficient%20cpu&workload=shop%2Fhuge #/queue?place=&reason=Insufficient%20cpu&workload=shop%2Fdb"`)
	c.until(`document.querySelector("a[href='#/decisions?result=Evicted']").innerText === "2 evicted"`)
	c.route("#/queue?place=&reason=Insufficient%20cpu&workload=shop%2Fdb")
	c.says("Only of shop/db")
	p.mu.Lock()
	asked := p.asked[len(p.asked)-1]
	p.mu.Unlock()
	if want := "pending?limit=200&reason=Insufficient+cpu&workload=shop%2Fdb"; asked != want && asked != "summary" {
		t.Errorf("it asks %s", asked)
	}
	c.quiet()
}

// The page of a pod that is gone begins with what happened to it, in place of an error.
func TestPodsThatAreGoneInABrowser(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	scheduled := records.Record{Time: at, Type: records.Attempt, Pod: "shop/cart", Attempt: 1, Result: "Scheduled", Node: "n1"}
	evicted := records.Record{Time: at.Add(time.Minute), Type: records.Evicted, Pod: "shop/cart", Node: "n1", For: "shop/pay"}
	c, p := play(t, map[string]any{"records": &api.RecordList{Records: []records.Record{scheduled, evicted}}})
	verdict := func(want string) {
		t.Helper()
		c.route("#/")
		c.route("#/pod/shop/cart")
		c.until(fmt.Sprintf(`document.querySelector("[aria-label=Verdict]")?.innerText === %q && !document.querySelector("main [role=alert]")`, want))
	}
	verdict("Gone: it was evicted from n1 for shop/pay at 2026-01-31 12:01:00 UTC.")
	p.set(map[string]any{"records": &api.RecordList{Records: []records.Record{evicted, scheduled}}}) // another of the name came
	verdict("Gone: it ended or was deleted, on n1. Its last record is of 2026-01-31 12:00:00 UTC.")
	p.set(map[string]any{"records": &api.RecordList{Records: []records.Record{}}})
	c.route("#/")
	c.route("#/pod/shop/cart")
	c.until(`document.querySelector("main [role=alert]")?.innerText.includes("there is no such thing")`)
}

// What is free of a zone is what pods can have: nodes that are cordoned or not ready do not count. The cordoned
// ones are found by the word, and listed above the map.
func TestCordonedNodesOfferNothingInABrowser(t *testing.T) {
	table := largeTable(4)
	table.Cordoned[0], table.Ready[1] = true, false
	c, _ := play(t, map[string]any{"nodes": table})
	c.route("#/nodes?group=none")
	c.until(`document.querySelector("table[aria-label='Groups of nodes'] td:nth-child(3)")?.innerText === "2 CPUs (100%)"`) // of 4
	c.says("What is free on nodes that are cordoned or not ready is not counted.")
	c.until(`document.querySelector("main summary").innerText === "1 node is cordoned"`)
	c.route("#/nodes?group=state&q=cordoned")
	c.until(`document.querySelector("[aria-label=Map]").innerText === "1 node shown" && document.querySelector("table[aria-label='Groups of nodes'] td:nth-child(3)").innerText === "none"`)
	c.quiet()
}

// Of a pod that is larger than each node the events that may help come first.
func TestWhatHelpsALargePodInABrowser(t *testing.T) {
	answer := func(code string) json.RawMessage {
		return json.RawMessage(`{"pod":"shop/cart","verdict":"Misconfigured","message":"","node":"","nodesTotal":2,"nodesFeasible":0,"scores":[],"fixes":[],
			"groups":[{"nodes":2,"examples":["n1","n2"],"blockers":[{"plugin":"NodeResourcesFit","code":"` + code + `","reasons":["Insufficient cpu"]},{"plugin":"TaintToleration","code":"UnschedulableAndUnresolvable","reasons":["untolerated taint"]}]}],
			"events":[{"resource":"Node","action":"UpdateNodeTaint","plugin":"TaintToleration","text":"a node loses a taint"},{"resource":"Node","action":"Add","plugin":"NodeResourcesFit","text":"a node comes"},{"resource":"Pod","action":"UpdatePodScaleDown","plugin":"NodeResourcesFit","text":"a pod requests less"}]}`)
	}
	c, p := play(t, map[string]any{"why": answer("UnschedulableAndUnresolvable")})
	list := func(want string) {
		t.Helper()
		c.route("#/")
		c.route("#/pod/shop/cart")
		c.until(fmt.Sprintf(`[...document.querySelector("#region-Wakes-on")?.parentNode.querySelectorAll("li") ?? []].map(x => x.firstChild.data.trim() + (x.closest("details") ? " (folded)" : "")).join(", ") === %q`, want))
	}
	list("a node comes, a pod requests less, a node loses a taint (folded)")
	p.set(map[string]any{"why": answer("Unschedulable")})
	list("a node loses a taint, a node comes, a pod requests less")
	c.quiet()
}

// Of a record the overview says when it ends, and of files when the last decision was: their time stands still.
func TestTimeOfARecordInABrowser(t *testing.T) {
	c := startChromium(t)
	v := view(t, "--record", recorded(t))
	c.size(1280, 900, "light")
	c.enter(v)
	c.route("#/")
	c.until(`document.querySelector("main .note")?.innerText.startsWith("Record, ends at 2031-01-0")`)
	c.saysNot(" ago: ")
	c.route("#/compare")
	c.until(`document.querySelector("main .note pre")?.innerText === "berth view --record DIR --config NEW.yaml" && !document.querySelector("main [role=alert]")`)
}

// The examples of what-if name what is in the cluster, and fill in the field without trying it.
func TestExamplesOfWhatIfInABrowser(t *testing.T) {
	c := startChromium(t)
	v := view(t, "-f", "testdata/held.yaml", "--simulate")
	c.size(1280, 900, "light")
	c.enter(v)
	c.route("#/what-if")
	c.until(`[...document.querySelectorAll("main p button")].map(b => b.innerText).join(", ") === "drain n1, remove n1"`)
	c.eval(`document.querySelector("main p button").click()`)
	c.until(`document.querySelector("main input").value === "drain n1" && !document.querySelector("[aria-label=Verdict]")`)
	c.quiet()
}

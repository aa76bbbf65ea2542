package tool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/records"
)

// The page of a placed pod names the pods that it evicted, and has no fixes. The page of a pod that
// waits begins with the fixes, and says each thing once.
func TestStoriesInABrowser(t *testing.T) {
	now := time.Now()
	c, p := play(t, map[string]any{
		"why":     json.RawMessage(`{"pod":"shop/cart","verdict":"Placed","node":"n1","groups":[],"fixes":[],"events":[],"nodesFeasible":2,"scores":[{"node":"n1","score":70,"margin":0,"scores":[]},{"node":"n2","score":60,"margin":10,"scores":[]}]}`),
		"records": &api.RecordList{Records: []records.Record{{Time: now, Type: records.Attempt, Pod: "shop/cart", Attempt: 1, Result: "Preempting", NominatedNode: "n1", Victims: []string{"shop/small-1", "shop/small-2"}}}},
	})
	c.route("#/decisions")
	c.until(`document.title === "Decisions · Berth"`)
	c.route("#/pod/shop/cart")
	c.until(`document.querySelector("#region-Preemption")?.parentNode.innerText.includes("attempt 1 evicted shop/small-1, shop/small-2 from n1.")`)
	c.until(`[...document.querySelectorAll("#region-Preemption ~ ul a")].map(a => a.hash).join(" ") === "#/pod/shop/small-1 #/pod/shop/small-2 #/node/n1"`)
	c.saysNot("It evicts no pod")
	c.says("n1 (the pod is here)")
	c.says("No record of the decision is kept.")
	c.says("As of now, not of the decision:")
	for _, none := range []string{"Blockers", "Fixes", "Wakes on"} {
		if c.named("region", none) > 0 {
			t.Errorf("of a placed pod there is %s", none)
		}
	}
	c.until(`document.querySelector("nav [aria-current]").innerText === "Decisions"`)

	p.set(map[string]any{
		"why": json.RawMessage(`{"pod":"shop/small-1","verdict":"Waiting","message":"no room","node":"","nodesFeasible":0,"scores":[],
			"groups":[{"nodes":2,"examples":["n1","n2"],"blockers":[{"plugin":"TaintToleration","code":"U","reasons":["untolerated taint"]}]}],
			"since":[{"what":"taint a=b:NoSchedule of n1","by":"ann"},{"what":"taint a=b:NoSchedule of n2","by":"ann"}],
			"fixes":[{"summary":"add a node","then":{"node":"new"},"commands":["# 16 CPUs"]}],
			"events":[{"resource":"Node","action":"Add","plugin":"NodeResourcesFit","text":"a node comes"},{"resource":"Node","action":"Add","plugin":"TaintToleration","text":"a node comes"}],
			"queue":{"place":"unschedulable","since":"` + now.Format(time.RFC3339) + `","attempts":1,"position":51}}`),
		"records": &api.RecordList{Records: []records.Record{{Time: now, Type: records.Evicted, Pod: "shop/small-1", Node: "n1", For: "shop/cart"}, {Time: now, Type: records.Moved, Pod: "shop/small-1", From: "unschedulable", To: "active", Event: "AssignedPodDelete"}}},
	})
	c.route("#/pod/shop/small-1")
	c.until(`document.querySelector("#region-Preemption")?.parentNode.innerText.includes("it was evicted from n1 for shop/cart.")`)
	c.says("number 51 in turn")
	c.says("unschedulable → active as a pod with a node went")
	c.says("taint a=b:NoSchedule of n1, n2, by ann")
	c.says("a node comes (NodeResourcesFit, TaintToleration)")
	c.until(`document.querySelector("main h2").innerText === "Fixes" && document.querySelector("nav [aria-current]").innerText === "Decisions"`)
	if c.named("button", "Copy command") > 0 {
		t.Error("a comment can be copied as a command")
	}
	c.quiet()
}

// Of a placed pod the page says what the record of its decision keeps: the points of the node, of how many
// nodes, and whether a draw decided. The table beside is of now, and says so.
func TestScoresOfTheDecisionInABrowser(t *testing.T) {
	attempt := records.Record{Time: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), Type: records.Attempt, Pod: "shop/cart", Attempt: 2, Result: "Scheduled", Node: "n1", Score: 187, NodesFeasible: 12}
	c, p := play(t, map[string]any{
		"why":     json.RawMessage(`{"pod":"shop/cart","verdict":"Placed","node":"n1","groups":[],"fixes":[],"events":[],"nodesFeasible":2,"scores":[{"node":"n2","score":70,"margin":0,"scores":[]},{"node":"n1","score":60,"margin":10,"scores":[]}]}`),
		"records": &api.RecordList{Records: []records.Record{attempt}},
	})
	says := func(text string) {
		t.Helper()
		c.route("#/")
		c.route("#/pod/shop/cart")
		c.until(fmt.Sprintf(`document.querySelector("#region-Scores")?.parentNode.innerText.includes(%q)`, text))
	}
	says("The decision, 2026-01-31 12:00:00 UTC: n1 had 187 points, the most of 12 feasible nodes. The scores of the other nodes are not kept.")
	says("As of now, not of the decision:")
	attempt.Ties = 3
	p.set(map[string]any{"records": &api.RecordList{Records: []records.Record{attempt}}})
	says("the most of 12 feasible nodes, as had 2 others, and a draw decided.")
	attempt.NodesFeasible, attempt.Ties = 1, 1
	p.set(map[string]any{"records": &api.RecordList{Records: []records.Record{attempt}}})
	says("n1 was the only feasible node, and needed no score.")
	c.quiet()
}

// The box finds pods that were bound, by a part of their names, and says where nothing is found. The queue
// says since when pods wait, not since when they were tried last.
func TestFindingPodsInABrowser(t *testing.T) {
	now := time.Now()
	created := now.Add(-21 * time.Minute)
	c, p := play(t, map[string]any{
		"records": &api.RecordList{Records: []records.Record{{Time: now, Type: records.Bound, Pod: "shop/web-7f-1", Node: "n1"}}},
		"summary": &api.Summary{Time: now, Nodes: 1, Queue: api.Queue{Unschedulable: 1}, Rates: records.Rates{Attempts: map[string]int{}}, Blocking: []records.Blocking{}},
		"pending": &api.PendingList{Pods: []api.PendingPod{{Pod: "shop/cart", Place: "unschedulable", Since: now.Add(-52 * time.Second), Created: &created}}, Total: 1},
	})
	c.route("#/queue")
	c.until(`document.querySelector("table[aria-label=Pods] td:nth-child(2)")?.innerText === "21 min"`)
	c.eval(`document.querySelector("[type=search]").focus()`)
	for _, key := range "web" {
		c.press(string(key))
	}
	c.until(`document.querySelector("[role=option]")?.innerText === "pod shop/web-7f-1"`)
	c.press("x")
	c.until(`document.querySelector(".nothing")?.innerText.startsWith("Nothing is found")`)
	c.press("Escape")
	c.eval(`(document.activeElement.blur(), document.querySelector("[type=search]").focus())`)
	c.press("w")
	c.until(`document.querySelector("[role=option]")`)
	p.mu.Lock()
	defer p.mu.Unlock()
	if asked := strings.Count(strings.Join(p.asked, " "), "reason=bound"); asked != 1 {
		t.Errorf("the records were asked for %d times", asked)
	}
	c.quiet()
}

// A daemon that finds any pod by a part of its name is asked for that, and for no list of pods.
func TestFindingAnyPodInABrowser(t *testing.T) {
	c, p := play(t, map[string]any{
		"capabilities": &api.Capabilities{Time: time.Now(), Identity: "berth-1", Leads: true, Paths: []string{"summary", "nodes", "find", "records", "pending"}},
		"find":         &api.Found{Pods: []string{"shop/cart-of-last-week"}, Nodes: []string{}},
	})
	c.until(`document.querySelector("[aria-label=Connection]").innerText === "Live"`)
	c.eval(`document.querySelector("[type=search]").focus()`)
	for _, key := range "last" {
		c.press(string(key))
	}
	c.until(`document.querySelector("[role=option]")?.innerText === "pod shop/cart-of-last-week"`)
	p.set(map[string]any{"find": &api.Found{Pods: []string{}, Nodes: []string{}}})
	c.press("x")
	c.until(`document.querySelector(".nothing")?.innerText === "No node and no pod has that in its name."`)
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := strings.Join(p.asked, " ")
	if !strings.Contains(asked, "find?q=lastx&limit=12") && !strings.Contains(asked, "find?limit=12&q=lastx") || strings.Contains(asked, "pending") {
		t.Errorf("it asks %s", asked)
	}
	c.quiet()
}

// What a change leads to begins with whether it can be made, and names the budgets that hold pods back.
func TestVerdictOfWhatIfInABrowser(t *testing.T) {
	c := startChromium(t)
	v := view(t, "-f", "testdata/held.yaml", "--simulate")
	c.size(1280, 900, "light")
	c.enter(v)
	c.route("#/what-if?do=drain%20n1")
	c.until(`document.querySelector("[aria-label=Verdict]")?.innerText === "n1 cannot be drained: the budget default/web holds 2 pods. Each pod that has a node keeps it or finds another."`)
	if got := c.eval(`document.querySelector("table[aria-label=Budgets] tbody").innerText`); got != "default/web\t0\t0\tyes\t2" {
		t.Errorf("of the budget it says %q", got)
	}
	c.quiet()
}

// The decisions can be narrowed to a part of a name and to a result. The hash route holds both, and what
// matches stays when 500 other records come.
func TestDecisionsAreNarrowedInABrowser(t *testing.T) {
	now := time.Now()
	attempt := func(pod, result, node string) records.Record {
		return records.Record{Time: now, Type: records.Attempt, Pod: pod, Attempt: 1, Result: result, Node: node}
	}
	c, p := play(t, map[string]any{"records": &api.RecordList{Records: []records.Record{attempt("shop/cart", "Scheduled", "n1"), attempt("shop/web", "Unschedulable", ""), attempt("bank/cart", "Scheduled", "n2")}}})
	shows := func(pods string) {
		t.Helper()
		c.until(fmt.Sprintf(`[...document.querySelectorAll("[role=log] li > a")].map(a => a.innerText).join(" ") === %q`, pods))
	}
	c.route("#/decisions")
	shows("bank/cart shop/web shop/cart")
	c.eval(`document.querySelector("main input").focus()`)
	for _, key := range "shop/" {
		c.press(string(key))
	}
	shows("shop/web shop/cart")
	c.until(`location.hash === "#/decisions?q=shop%2F" && document.activeElement === document.querySelector("main input")`)
	c.press("Tab")
	c.until(`document.activeElement.labels[0].innerText.startsWith("Result")`)
	c.press("S") // a list is chosen from by the first letter
	shows("shop/cart")
	c.until(`location.hash === "#/decisions?q=shop%2F&result=Scheduled"`)
	c.route("#/decisions?q=N2")
	shows("bank/cart")
	c.route("#/decisions?q=nothing")
	c.says("None of the newest 3 records matches.")
	p.mu.Lock()
	defer p.mu.Unlock()
	if asked := strings.Join(p.asked, " "); !strings.Contains(asked, "records?limit=2000&reason=Scheduled") {
		t.Errorf("it asks %s", asked)
	}
	c.quiet()
}

// The answer names the budgets that hold back each pod that is not evicted, with their numbers:
// nobody is to read them out of a sentence.
func TestKeptPodsHaveTheirBudgets(t *testing.T) {
	var got struct {
		Kept []struct {
			Pod     string
			Budgets []struct {
				Budget        string
				Allowed, Down int
				Broken        bool
			}
		}
	}
	_, out, errs := berth("", "what-if", "-f", "testdata/held.yaml", "-o", "json", "drain", "n1")
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err, errs)
	}
	if text := fmt.Sprint(got.Kept); text != "[{default/web-1 [{default/web 0 0 false}]} {default/web-2 [{default/web 0 0 false}]}]" {
		t.Error(text)
	}
}

// What-if and compare begin with a sentence, and group what changes by what it costs: evicted, without a
// node, moved; worse, better.
func TestOutcomesAreGroupedInABrowser(t *testing.T) {
	c, _ := play(t, nil)
	c.eval(`(() => {
		const day = wait => ({ name: "default", arrived: 4, placed: 4, pending: 0, left: 0, decisions: 4, preemptions: 0, waitP50: wait, waitP90: 2, waitP99: 2, waitMax: 2, cpu: 0, memory: 0, stranded: 0, empty: 0, emptyAtEnd: 0, samples: [] })
		const room = { cpu: { allocatable: 4000, requested: 1000, free: 3000 } }
		const answers = {
			"what-if": { changes: ["drain n1"], moved: [{ pod: "shop/a", from: "n1", to: "n2" }, { pod: "shop/b", from: "n1", to: null }], placements: { "shop/a": "n2" }, unplaced: { "shop/b": "no room", "shop/c": "no room" },
				kept: [{ pod: "shop/d", node: "n1", why: "in words that nobody reads", budgets: [{ budget: "shop/web", allowed: 2, down: 1, broken: false }] }], gone: [], stayed: [], evicted: [{ pod: "shop/e", node: "n2", for: "shop/a" }], budgets: [],
				resources: { before: room, after: room } },
			compare: { from: "2026-01-31T12:00:00Z", to: "2026-01-31T13:00:00Z", a: day(1), b: day(3), same: 4, elsewhere: [], onlyA: [], onlyB: [], evictedA: [], evictedB: [], emptyA: [], emptyB: [],
				workloads: [{ workload: "x", pods: 1, elsewhere: 0, verdict: "better", because: "wait" }, { workload: "y", pods: 1, elsewhere: 0, verdict: "worse", because: "wait" }, { workload: "z", pods: 2, elsewhere: 0, verdict: "same" }] },
		}
		const ask = window.fetch
		window.fetch = (url, ...rest) => { const answer = answers[String(url).replace("berth/v1/", "").split("?")[0]]; return answer ? Promise.resolve(new Response(JSON.stringify(answer))) : ask(url, ...rest) }
	})()`)
	regions := func() string {
		t.Helper()
		return c.eval(`[...document.querySelectorAll("main section > h2")].map(x => x.innerText).join(", ")`)
	}
	c.route("#/what-if?do=drain%20n1")
	c.until(`document.querySelector("[aria-label=Verdict]")?.innerText === "n1 cannot be drained: the budget shop/web holds 1 pod. 1 pod loses its node and finds no other. 1 pod is preempted."`)
	if got := regions(); !strings.HasSuffix(got, "Not evicted, Budgets, Moved, Preempted, Without a node, Resources") {
		t.Error(got)
	}
	for table, want := range map[string]string{"Lost their node": "shop/b", "Had no node before": "shop/c", "Moved": "shop/a", "Budgets": "shop/web"} { // any order
		if got := c.eval(fmt.Sprintf(`[...document.querySelectorAll("table[aria-label=\"%s\"] tbody td:first-child")].map(x => x.textContent).join(" ")`, table)); got != want {
			t.Errorf("%s: %s", table, got)
		}
	}
	c.until(`document.querySelector("main details:not([open]) table")?.getAttribute("aria-label") === "Had no node before"`)
	c.route("#/compare")
	c.until(`document.querySelector("main .lead")?.innerText === "Pods waited longer under B than under A: median 3.000 s instead of 1.000 s."`)
	if got := regions(); got != "Worse under B, Better under B, Figures, Over time, Pods" {
		t.Error(got)
	}
	c.quiet()
}

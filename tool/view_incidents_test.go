package tool

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/records"
)

// Pods that ask for a scheduler that is not this one, which may be there or be a misspelt name, are counted
// on the overview, and a link leads to them. A page of one file has them, too.
func TestOtherSchedulersInABrowser(t *testing.T) {
	c := startChromium(t)
	c.size(1280, 900, "light")
	cluster := nodeYAML
	for _, pod := range []string{"name: r1", "name: r2", "name: v"} {
		scheduler := "my-schduler"
		if pod == "name: v" {
			scheduler = "volcano"
		}
		cluster += "---\n" + strings.NewReplacer("name: p", pod, "containers", "schedulerName: "+scheduler+", containers").Replace(podYAML)
	}
	file, page := filepath.Join(t.TempDir(), "cluster.yaml"), filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(cluster), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := berth("", "view", "--export", page, "-f", file); status != exitPlaced {
		t.Fatal(errs)
	}
	c.enter(view(t, "-f", file))
	for _, begin := range []func(){func() {}, func() { c.open("file://" + page) }} {
		begin()
		c.route("#/")
		c.says("3 pods ask for schedulers that are not this one: my-schduler 2, volcano 1. This one is default-scheduler.")
		c.eval(`[...document.querySelectorAll("main a")].find(a => a.innerText === "my-schduler").click()`)
		c.until(`[...document.querySelectorAll("table[aria-label=Pods] tbody td:first-child")].map(x => x.innerText).join(" ") === "default/r1 default/r2"`)
		c.says(`its schedulerName is "my-schduler"`)
		if tab := c.eval(`document.querySelector("[role=tab][aria-selected=true]")?.innerText`); tab != "Other schedulers 3" {
			t.Errorf("the tab is %s", tab)
		}
		c.eval(`document.querySelector("table[aria-label=Pods] tbody a").click()`)
		c.until(`document.querySelector("[aria-label=Verdict]")?.innerText.includes('no profile has the schedulerName "my-schduler"')`)
	}
}

// The page of a pod whose binding is refused leads with that, says that no fix is sought, and folds the
// attempts that went alike. The overview does not call them scheduled, and what failed is named.
func TestRefusedBindingsInABrowser(t *testing.T) {
	const denial = `running Bind plugin "DefaultBinder": pods "cart" is forbidden: ValidatingAdmissionPolicy 'audit' denied request`
	now := time.Now()
	var list []records.Record
	for i := range 3 {
		at := now.Add(time.Duration(i-3) * time.Minute)
		list = append(list, records.Record{Time: at, Type: records.Attempt, Pod: "shop/cart", Attempt: i + 2, Result: "Scheduled", Node: fmt.Sprint("n", i)},
			records.Record{Time: at, Type: records.Attempt, Pod: "shop/cart", Attempt: i + 2, Result: "Error", Message: denial},
			records.Record{Time: at, Type: records.Moved, Pod: "shop/cart", From: "in flight", To: "error backoff", Event: "ScheduleAttemptFailure"},
			records.Record{Time: at, Type: records.Moved, Pod: "shop/cart", From: "error backoff", To: "active", Event: "BackoffComplete"})
	}
	list = append([]records.Record{{Time: now.Add(-time.Hour), Type: records.Attempt, Pod: "shop/cart", Attempt: 1, Result: "Unschedulable", Message: "0/1 nodes are available"}}, list[:11]...)
	c, _ := play(t, map[string]any{
		"why": json.RawMessage(`{"pod":"shop/cart","verdict":"WouldBePlaced","sentence":"shop/cart would go to n1.","message":"","node":"n1","nodesFeasible":1,"groups":[],"fixes":[],"events":[],"scores":[],
			"observed":{"from":"record","reason":"SchedulerError","message":"what is said already","agrees":false},
			"refusal":{"times":58,"since":"2026-01-31T12:00:00Z","last":"` + now.Format(time.RFC3339) + `","message":"pods \"cart\" is forbidden: the policy says no"}}`),
		"records": &api.RecordList{Records: list},
		"summary": &api.Summary{Time: now, Nodes: 1, Queue: api.Queue{ErrorBackoff: 1}, Rates: records.Rates{Seconds: 60, Attempts: map[string]int{"Scheduled": 10, "Error": 10}}, Blocking: []records.Blocking{{Plugin: "binding", Reason: denial, Pods: 1}}},
		"pending": &api.PendingList{Pods: []api.PendingPod{{Pod: "shop/cart", Place: "error backoff", Since: now, FailedBy: "binding", Message: denial}}, Total: 1},
	})
	c.route("#/")
	c.says("10 attempts found a node")
	c.says("10 attempts failed")
	c.saysNot("scheduled")
	c.route("#/queue")
	c.until(`document.querySelector("table[aria-label=Pods] td:nth-child(6)")?.innerText === "binding"`)
	c.route("#/pod/shop/cart")
	c.until(`/^WouldBePlaced: its binding was refused 58 times, last \d+ s ago: pods "cart" is forbidden: the policy says no$/.test(document.querySelector("[aria-label=Verdict]")?.innerText)`)
	c.says("By what is known here, without the policies and webhooks of the API server: shop/cart would go to n1.")
	c.says("None is sought, as the API server refuses the binding")
	c.saysNot("what is said already")
	c.until(`document.querySelectorAll(".records > li").length > 0`)
	if got := c.eval(`[...document.querySelector(".records").children].length`); got != "2" {
		t.Errorf("%s lines: %s", got, c.eval(`document.querySelector(".records").innerText`))
	}
	c.says("3 times, first ")
	c.says("attempt 4: scheduled on n2")
	c.saysNot("attempt 3")
	c.quiet()
}

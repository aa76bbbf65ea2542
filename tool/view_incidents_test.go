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

// The page of a pod names the rollout that blocks it in the sentence of berth why: of files, and of a cluster, whose
// Deployments are read with the rights of the user. Nothing is said where they may not be read, or the rollout was
// complete. It says how many pods wait beside this one, and that what helps was tried for this one.
func TestRolloutsInABrowser(t *testing.T) {
	c := startChromium(t)
	c.size(1280, 900, "light")
	c.enter(view(t, "-f", "testdata/cases/why-rollout-raised.yaml", "--simulate"))
	c.route("#/pod/shop/search-7d-a")
	c.says(`The rollout to replicaset search-7d (revision 3), since 2026-11-27 02:00:00Z, raised the memory request of container "c" from 4Gi to 40Gi; 1 pod of search-5c runs.`)
	c.says("1 other pod of its workload waits, too.")
	c.says("What helps was tried for this pod alone: it may not suffice for the other pod of its workload.")
	c.route("#/pod/web/back-7d-a")
	c.says("back-7d-a waits for room")
	c.saysNot("rollout")

	const apps = "/apis/apps/v1/namespaces/shop/"
	complete := func(reason string) json.RawMessage {
		return json.RawMessage(`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"namespace":"shop","name":"web","uid":"d"},"spec":{"selector":{"matchLabels":{"b":"c"}},"template":{"metadata":{"labels":{"b":"c"}},"spec":{"containers":[{"name":"c"}]}}},
			"status":{"conditions":[{"type":"Progressing","status":"True","reason":"` + reason + `"}]}}`)
	}
	c, p := play(t, map[string]any{
		"why": json.RawMessage(`{"pod":"shop/web-2-a","verdict":"Waiting","sentence":"shop/web-2-a waits for room.","message":"","node":"","fixes":[],"events":[],"scores":[],
			"groups":[{"nodes":1,"examples":["n1"],"blockers":[{"plugin":"NodeResourcesFit","code":"Unschedulable","reasons":["Insufficient memory"]}]}]}`),
		"/api/v1/namespaces/shop/pods/web-2-a": json.RawMessage(`{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"shop","name":"web-2-a","labels":{"a":"b","pod-template-hash":"2"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-2","uid":"web-2","controller":true}]},
			"spec":{"containers":[{"name":"c","resources":{"requests":{"memory":"40Gi"}}}]}}`),
		apps + "replicasets":     json.RawMessage(`{"kind":"ReplicaSetList","apiVersion":"apps/v1","items":[` + replicaSet("web-1", 1, "4Gi") + "," + replicaSet("web-2", 2, "40Gi") + `]}`),
		apps + "deployments/web": complete("ReplicaSetUpdated"),
	})
	c.route("#/pod/shop/web-2-a")
	c.says(`raised the memory request of container "c" from 4Gi to 40Gi`)
	for name, answer := range map[string]any{"complete": complete("NewReplicaSetAvailable"), "forbidden": nil} { // any order
		p.set(map[string]any{apps + "deployments/web": answer})
		c.route("#/")
		c.route("#/pod/shop/web-2-a")
		c.says("waits for room")
		if c.eval(`document.querySelector("main").innerText.includes("rollout")`) != "false" {
			t.Errorf("%s: a rollout is named", name)
		}
	}
}

// The map begins with the resource that is the most frequent cause, and the tables have a column for it. What the
// address asks for is shown, though.
func TestMapBeginsWithTheCauseInABrowser(t *testing.T) {
	const eni = "vpc.amazonaws.com/pod-eni"
	table := largeTable(2)
	table.Resources[eni] = api.Amounts{Allocatable: []int64{9, 9}, Requested: []int64{9, 6}}
	of := func(reason string) *api.Summary {
		return &api.Summary{Time: time.Now(), Nodes: 2, Queue: api.Queue{Unschedulable: 3}, Rates: records.Rates{Attempts: map[string]int{}},
			Blocking: []records.Blocking{{Plugin: "NodeResourcesFit", Reason: reason, Pods: 3}, {Plugin: "NodeResourcesFit", Reason: "Insufficient memory", Pods: 1}}}
	}
	c, p := play(t, map[string]any{"nodes": table, "summary": of("Insufficient " + eni)})
	by := func(want string) {
		t.Helper()
		c.until(fmt.Sprintf(`document.querySelector("main select")?.value === %q`, want))
	}
	c.route("#/nodes")
	by(eni)
	c.says("The colours begin with " + eni)
	c.until(`[...document.querySelectorAll("table[aria-label='Groups of nodes'] th")].map(x => x.innerText).join() === "Group,Nodes,Free CPU,Free memory,Free pods,Free ` + eni + `,Cordoned,Not ready"`)
	c.until(`document.querySelector("table[aria-label='Groups of nodes'] td:nth-child(6)").innerText === "3 (17%)"`)
	c.eval(`[...document.querySelectorAll("button")].find(b => b.innerText === "Show as table").click()`)
	c.until(`document.querySelector("table[aria-label=Nodes] td:last-child")?.innerText === "100% of 9"`)
	c.route("#/nodes?by=memory")
	by("memory")
	c.saysNot("The colours begin with")
	for reason, want := range map[string]string{"Too many pods": "pods", "Insufficient example.com/unknown": "cpu"} { // any order
		p.set(map[string]any{"summary": of(reason)})
		c.route("#/")
		c.route("#/nodes")
		by(want)
	}
	c.quiet()
}

package tool

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/records"
)

// played is a daemon whose answers a test gives, by path.
type played struct {
	testing.TB
	mu      sync.Mutex
	answers map[string]any // a *api.Problem is refused; no answer is 404
	asked   []string       // in order
	url     string
	closed  chan struct{} // ends the streams
	view    *viewed
}

// forbidden is the answer to whoever may not ask.
func forbidden(what string) *api.Problem {
	return &api.Problem{Head: api.Head{APIVersion: api.Version, Kind: "Problem"}, Code: http.StatusForbidden, Reason: "Forbidden", Message: "ann may not read " + what}
}

// play serves the answers until the test ends, and opens the page in a browser.
func play(t *testing.T, answers map[string]any) (*chromium, *played) {
	c := startChromium(t) // first: it may skip the test
	p := &played{TB: t, closed: make(chan struct{}), answers: map[string]any{
		"capabilities": &api.Capabilities{Time: time.Now(), Identity: "berth-1", Leads: true},
		"nodes":        largeTable(1), "history": &api.History{Times: []time.Time{}}, "records": &api.RecordList{Records: []records.Record{}},
		"pending": &api.PendingList{Pods: []api.PendingPod{}}, "groups": &api.GroupList{Groups: []api.Group{}}, "quotas": &api.QuotaList{Quotas: []api.Quota{}},
		"summary": &api.Summary{Time: time.Now(), Nodes: 1, Rates: records.Rates{Attempts: map[string]int{}}, Blocking: []records.Blocking{}},
	}}
	maps.Copy(p.answers, answers)
	daemon := httptest.NewTLSServer(p)
	t.Cleanup(daemon.Close)
	t.Cleanup(daemon.CloseClientConnections)
	p.url = daemon.URL
	apiServer := httptest.NewServer(p) // it has no certificate that a kubeconfig would have to know
	t.Cleanup(apiServer.Close)
	p.view = view(t, "--daemon", p.url, "--insecure-skip-tls-verify", "--kubeconfig", kubeconfigFor(t, apiServer.URL))
	c.size(1280, 900, "light")
	c.enter(p.view)
	return c, p
}

func (p *played) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	what := strings.TrimPrefix(r.URL.Path, api.Prefix)
	p.mu.Lock()
	answer, closed := p.answers[what], p.closed
	p.asked = append(p.asked, strings.TrimPrefix(r.URL.String(), api.Prefix))
	p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch a := answer.(type) {
	case nil:
		if what == "watch" {
			streamed("").stream(w, r, closed)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Problem","code":404,"reason":"NotFound","message":"there is no such thing"}`)
	case streamed:
		a.stream(w, r, closed)
	case *api.Problem:
		w.WriteHeader(a.Code)
		_ = json.NewEncoder(w).Encode(a)
	default:
		_ = json.NewEncoder(w).Encode(a)
	}
}

// set gives other answers from now on.
func (p *played) set(answers map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.Copy(p.answers, answers)
}

// breakStreams ends the streams; what follows them is the answer to watch.
func (p *played) breakStreams(answer any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers["watch"] = answer
	close(p.closed)
	p.closed = make(chan struct{})
}

// says waits until the page says the text.
func (c *chromium) says(text string) {
	c.Helper()
	c.until(fmt.Sprintf(`document.querySelector("main").innerText.includes(%q)`, text))
}

// alertIn waits until the region has an alert with the text.
func (c *chromium) alertIn(region, text string) {
	c.Helper()
	c.until(fmt.Sprintf(`[...document.querySelectorAll("section")].some(s => s.querySelector("h2").innerText === %q && s.querySelector("[role=alert]")?.innerText.includes(%q))`, region, text))
}

// saysNot fails the test if the page says the text.
func (c *chromium) saysNot(text string) {
	c.Helper()
	if c.eval(fmt.Sprintf(`document.querySelector("main").innerText.includes(%q)`, text)) != "false" {
		c.Errorf("%s says %q", c.eval("location.hash"), text)
	}
}

// What a view asks for beside its own answer is shown, or it is said that it is refused and why. Nothing
// is said in its place that is not known. What an older daemon does not know is left out.
func TestRefusedPartsInABrowser(t *testing.T) {
	waiting := &api.Summary{Time: time.Now(), Nodes: 1, Shadow: true, Queue: api.Queue{Active: 2}, Rates: records.Rates{Seconds: 12, Bound: 7, Attempts: map[string]int{"Scheduled": 7}}, Blocking: []records.Blocking{}}
	c, p := play(t, map[string]any{"summary": waiting, "shadow": forbidden("shadow"), "history": forbidden("history"), "quotas": forbidden("quotas"), "records": forbidden("records"), "pending": forbidden("pending"),
		"why": json.RawMessage(`{"pod":"shop/cart","verdict":"Placed","node":"node-00000","groups":[],"fixes":[],"events":[],"scores":[]}`)})
	c.route("#/")
	c.alertIn("Choices", "ann may not read shadow")
	c.alertIn("Last hour", "ann may not read history")
	c.says("1 node with 0 pods. 2 pods wait.")
	c.says("No pod that waits was rejected.")
	if text := c.eval(`[...document.querySelectorAll("section")].find(s => s.querySelector("h2").innerText === "Last 12 s")?.innerText`); text != "Last 12 s\n7 bound\n7 attempts found a node\n0 evicted" {
		t.Errorf("of 12 s it says %q", text)
	}
	c.route("#/groups")
	c.alertIn("Quotas", "ann may not read quotas")
	c.says("There is no pod group.")
	c.route("#/decisions")
	c.says("ann may not read records")
	c.saysNot("Nothing has happened")
	c.route("#/pod/shop/cart")
	c.alertIn("Attempts", "ann may not read records")
	c.saysNot("Nothing is recorded")
	c.route("#/nodes?by=why")
	c.says("ann may not read pending")
	c.eval(`document.querySelector("[type=search]").focus()`)
	c.press("x")
	c.until(`document.querySelector(".find [role=status]")?.innerText === "Pods that wait are not found: ann may not read pending"`)
	c.press("Escape")

	p.set(map[string]any{"capabilities": &api.Capabilities{Time: time.Now(), Identity: "berth-1", Leads: true, Paths: []string{"summary", "groups", "nodes", "records"}}, "quotas": nil, "records": &api.RecordList{Records: []records.Record{}}})
	c.eval(`(window.old = true, location.hash = "#/groups", location.reload())`)
	c.until(`!window.old && document.querySelector("main")`)
	c.says("There is no pod group.")
	c.until(`document.querySelector("main").getAttribute("aria-busy") === "false"`)
	c.saysNot("there is no such thing")
	c.route("#/decisions")
	c.says("Nothing has happened yet.")
}

// Lists are bounded, and say how many there are more.
func TestLongListsInABrowser(t *testing.T) {
	const many = 400
	groups, quotas, member := &api.GroupList{Total: 10_000}, &api.QuotaList{Total: many}, api.Member{Pod: "shop/cart", Place: "active"}
	node := &api.Node{Name: "node-00000", Pods: []api.NodePod{}, Records: []records.Record{}, Resources: map[v1.ResourceName]api.OneAmount{}}
	group := &api.GroupAnswer{Group: api.Group{Group: "shop/train", Pods: 10_000}}
	for i := range many {
		groups.Groups = append(groups.Groups, api.Group{Group: fmt.Sprintf("shop/group-%d", i), Waiting: 1, Place: "unschedulable"})
		q := api.Quota{Quota: fmt.Sprintf("ns-%d/quota", i), Waiting: 1}
		for _, r := range []v1.ResourceName{"cpu", "memory", "example.com/gpu"} {
			most := int64(10)
			q.Resources = append(q.Resources, api.QuotaResource{Name: r, Used: 3, Max: &most})
		}
		quotas.Quotas = append(quotas.Quotas, q)
		node.Nominated = append(node.Nominated, "shop/cart")
	}
	for range 10_000 {
		group.Members = append(group.Members, member)
	}
	c, _ := play(t, map[string]any{"groups": groups, "quotas": quotas, "group": group, "node": node})
	for _, view := range []struct {
		hash  string
		texts []string
	}{
		{"#/groups", []string{"And 9,900 more groups.", "And 350 more quotas."}},
		{"#/group/shop/train", []string{"And 9,700 more pods."}},
		{"#/node/node-00000", []string{"and 300 more pods"}},
	} {
		c.route(view.hash)
		for _, text := range view.texts {
			c.says(text)
		}
		if n := c.eval(`document.querySelectorAll("*").length > 5000`); n != "false" {
			t.Errorf("%s has more than 5,000 elements", view.hash)
		}
	}
}

// Of a list of more than 1,000 the rest can be reached, a thousand at a time, and it says which are shown.
func TestTheRestOfALongListInABrowser(t *testing.T) {
	group := &api.GroupAnswer{Group: api.Group{Group: "shop/train", Pods: 2300}}
	for i := range 2300 {
		group.Members = append(group.Members, api.Member{Pod: fmt.Sprintf("shop/train-%d", i+1), Place: "active"})
	}
	c, _ := play(t, map[string]any{"group": group})
	c.route("#/group/shop/train")
	shows := func(rows int, first, text string) {
		t.Helper()
		c.until(fmt.Sprintf(`document.querySelectorAll("table[aria-label=Members] tbody tr").length === %d && document.querySelector("table[aria-label=Members] tbody a").innerText === %q`, rows, first))
		c.says(text)
	}
	click := func(button string) {
		t.Helper()
		c.until(fmt.Sprintf(`[...document.querySelectorAll("button")].some(b => b.innerText === %q)`, button))
		c.eval(fmt.Sprintf(`[...document.querySelectorAll("button")].find(b => b.innerText === %q).click()`, button))
	}
	click("Show 1,000")
	shows(1000, "shop/train-1", "1 to 1,000 pods of 2,300 are shown.")
	c.says("And 1,300 more pods.")
	click("Show the next 1,000")
	shows(1000, "shop/train-1001", "1,001 to 2,000 pods of 2,300 are shown.")
	click("Show the next 300")
	shows(300, "shop/train-2001", "2,001 to 2,300 pods of 2,300 are shown.")
	c.saysNot("more pods")
	click("Show the 1,000 before")
	shows(1000, "shop/train-1001", "1,001 to 2,000 pods of 2,300 are shown.")
	c.quiet()
}

// At 320 pixels no table scrolls sideways: a row is a card, each cell with its label. It is a table to a
// screen reader all the same.
func TestTablesAreCardsInABrowser(t *testing.T) {
	c := startChromium(t)
	v := view(t, "-f", "testdata/stuck.yaml", "--simulate")
	c.size(320, 700, "light")
	c.enter(v)
	for hash, table := range map[string]string{"#/queue": "Pods", "#/node/n1": "Resources", "#/pod/default/affinity": "Blockers"} { // any order
		c.route(hash)
		c.until(fmt.Sprintf(`document.querySelector("table[aria-label=%s] td")`, table))
		if got := c.eval(`[...document.querySelectorAll(".scroll")].filter(e => e.scrollWidth > e.clientWidth).map(e => e.getAttribute("aria-label")).join(", ")`); got != "" {
			t.Errorf("%s scrolls sideways: %s", hash, got)
		}
		label := c.eval(fmt.Sprintf(`getComputedStyle(document.querySelector("table[aria-label=%s] td"), "::before").content`, table))
		if head := c.eval(fmt.Sprintf(`document.querySelector("table[aria-label=%s] th").textContent`, table)); !strings.Contains(label, head) {
			t.Errorf("%s: a cell of %s has the label %s, not %s", hash, table, label, head)
		}
		if head := c.eval(fmt.Sprintf(`document.querySelector("table[aria-label=%s] th").textContent`, table)); c.named("table", table) == 0 || c.named("columnheader", head) == 0 {
			t.Errorf("%s: there is no table %s with a column %s", hash, table, head)
		}
	}
	c.quiet()
}

// How old the data is does not depend on the clock of the daemon, and it is said to go on by itself only
// where it does. What was answered before stays, in grey.
func TestOldDataInABrowser(t *testing.T) {
	ahead := time.Now().Add(time.Hour)
	table := largeTable(1)
	table.Time = ahead
	c, p := play(t, map[string]any{"capabilities": &api.Capabilities{Time: ahead, Identity: "berth-1", Leads: true}, "nodes": table})
	c.until(`document.querySelector("[aria-label=Connection]").innerText === "Live"`)
	c.says("1 node with 0 pods. No pod waits.")
	p.set(map[string]any{"summary": &api.Problem{Head: api.Head{Kind: "Problem"}, Code: http.StatusGatewayTimeout, Reason: api.Failed, Message: "there is no answer within 55s"}})
	c.until(`document.querySelector("main [role=alert]")?.innerText.includes("there is no answer within 55s")`)
	c.until(`getComputedStyle(document.querySelector(".lead").closest(".old")).filter.includes("grayscale")`)
	p.breakStreams(forbidden("watch"))
	c.until(`/The scheduler refuses to say what changes. What is shown is \d+ s old\./.test(document.querySelector("main").innerText)`)
	c.saysNot("goes on by itself")
	p.set(map[string]any{"watch": &api.Problem{Head: api.Head{Kind: "Problem"}, Code: http.StatusServiceUnavailable, Reason: api.NotLeading, Message: "this daemon does not lead: berth-2 does", Leader: "berth-2"}})
	c.until(`/What is shown is \d+ s old, and goes on by itself once the page hears the one that leads\./.test(document.querySelector("main").innerText)`)
}

// The last decision is that of the summary: nobody asks for records by the clock, and a page that nobody
// sees asks for nothing.
func TestTimersInABrowser(t *testing.T) {
	last := records.Record{Time: time.Now(), Type: records.Attempt, Pod: "shop/cart", Attempt: 1, Result: "Scheduled", Node: "node-00000"}
	c, p := play(t, map[string]any{"summary": &api.Summary{Time: time.Now(), Nodes: 1, LastDecision: &last, Rates: records.Rates{Attempts: map[string]int{}}, Blocking: []records.Blocking{}}})
	c.until(`/Last decision \d+ s ago: shop\/cart, attempt 1: scheduled on node-00000/.test(document.querySelector("main").innerText)`)
	c.says("Nothing is recorded yet.")
	c.eval(`(() => {
		Object.defineProperty(document, "hidden", { configurable: true, get: () => true })
		const add = document.addEventListener.bind(document), ask = window.fetch
		document.addEventListener = (kind, ...rest) => { if (kind === "visibilitychange") window.waits = true; add(kind, ...rest) }
		window.fetch = (...of) => { if (String(of[0]).endsWith("summary")) window.asks = (window.asks ?? 0) + 1; return ask(...of) }
	})()`)
	c.until(`window.waits`)
	if n := c.eval(`window.asks`); n != "<nil>" {
		t.Errorf("hidden, it asks %s times", n)
	}
	c.eval(`(() => { Object.defineProperty(document, "hidden", { configurable: true, get: () => false }); document.dispatchEvent(new Event("visibilitychange")) })()`)
	c.until(`window.asks === 1`)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, asked := range p.asked {
		if strings.HasPrefix(asked, "records") {
			t.Errorf("it asks %s", asked)
		}
	}
}

// The link of the pods that wait for a quota leads to them in all places of the queue, in a file too.
func TestPodsOfAQuotaInABrowser(t *testing.T) {
	c := startChromium(t)
	c.size(1280, 900, "light")
	args := []string{"-f", "testdata/quotas.yaml", "--config", "testdata/quotas-config.yaml", "--simulate"}
	file := filepath.Join(t.TempDir(), "page.html")
	if status, _, errs := berth("", append([]string{"view", "--export", file}, args...)...); status != exitPlaced {
		t.Fatal(errs)
	}
	c.enter(view(t, args...))
	for _, begin := range []func(){func() {}, func() { c.open("file://" + file) }} {
		begin()
		c.route("#/groups")
		c.until(`document.querySelector("table[aria-label=Quotas] a[href*=queue]")`)
		c.eval(`document.querySelector("table[aria-label=Quotas] a[href*=queue]").click()`)
		c.until(`document.querySelector("table[aria-label=Pods]")?.innerText.includes("web/web-3")`)
		if tab := c.eval(`document.querySelector("[role=tab][aria-selected=true]")?.innerText`); tab != "All 1" {
			t.Errorf("the tab is %s", tab)
		}
		c.eval(`document.querySelector("[role=tab][aria-selected=true]").focus()`)
		c.press("ArrowRight")
		c.until(`document.activeElement.innerText === "Active 0" && document.querySelector("main").innerText.includes("No pod waits here")`)
		c.press("ArrowLeft")
		c.until(`document.querySelector("table[aria-label=Pods]")?.innerText.includes("web/web-3")`)
	}
	c.quiet()
}

// Whoever looks at a part of the nodes is told of all nodes whether the pod fits, and a cause keeps its
// letter.
func TestCausesOfSomeNodesInABrowser(t *testing.T) {
	c := startChromium(t)
	c.size(1280, 900, "light")
	c.enter(view(t, "-f", "testdata/stuck.yaml", "--simulate"))
	causes := func(hash string) string {
		c.route(hash)
		c.until(`document.querySelector("[aria-label=Fit]")?.innerText === "default/cpu fits none of 4 nodes."`)
		return c.eval(`document.querySelector("[aria-label=Causes]").innerText.replaceAll("\n", " ")`)
	}
	all := causes("#/nodes?by=why&pod=default/cpu")
	one := causes("#/nodes?by=why&pod=default/cpu&q=n3")
	_, letter, _ := strings.Cut(all, "1 node: node(s) were unschedulable")
	if strings.Contains(one, "Insufficient") || letter == "" || !strings.Contains(all, one) || strings.HasPrefix(one, "A ") {
		t.Errorf("of one node %q, of all %q", one, all)
	}
	c.quiet()
}

// A fix is tried as soon as its link is followed. What the page is opened with waits for the button: the
// address may be from anybody.
func TestTryingAFixInABrowser(t *testing.T) {
	c := startChromium(t)
	c.size(1280, 900, "light")
	v := view(t, "-f", "testdata/stuck.yaml", "--simulate")
	c.enter(v)
	c.route("#/pod/default/cordoned")
	c.until(`document.querySelector("[aria-label=Verdict]")`)
	c.eval(`[...document.querySelectorAll("button")].find(b => b.innerText === "Try in what-if").click()`)
	c.until(`document.querySelector("[aria-label=Outcome]")?.innerText.startsWith("uncordon n3:")`)
	c.route("#/node/n1")
	c.until(`document.querySelector("main a[href*=what-if]")`)
	c.eval(`document.querySelector("main a[href*=what-if]").click()`)
	c.until(`document.querySelector("[aria-label=Outcome]")?.innerText.startsWith("drain n1:")`)
	c.eval(`(window.old = true, location.reload())`)
	c.until(`!window.old && document.querySelector("input[type=text]")?.value === "drain n1" && document.querySelector("[aria-label=Connection]").innerText === "Files"`)
	c.until(`document.querySelector("main").getAttribute("aria-busy") === "false"`)
	c.saysNot("Trying")
	if c.eval(`!document.querySelector("[aria-label=Outcome]")`) != "true" {
		t.Error("the page was opened with a change, and tries it")
	}
	c.route("#/queue")
	c.eval(`history.back()`)
	c.until(`document.querySelector("input[type=text]")?.value === "drain n1" && document.querySelector("main").getAttribute("aria-busy") === "false"`)
	if c.eval(`!document.querySelector("[aria-label=Outcome]")`) != "true" {
		t.Error("the page came back to the change that it was opened with, and tries it")
	}
	c.eval(`[...document.querySelectorAll("button")].find(b => b.innerText === "Try").click()`)
	c.until(`document.querySelector("[aria-label=Outcome]")?.innerText.startsWith("drain n1:")`)
	c.quiet()
}

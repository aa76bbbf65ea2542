package tool

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/records"
)

// standIn is a daemon of so many nodes. What a test sends is an event of its streams.
type standIn struct {
	nodes   int
	off     time.Duration // of its clock
	asked   atomic.Int32
	streams atomic.Int32
	events  chan string
	url     string
}

// newStandIn starts a daemon, which ends with the test.
func newStandIn(t testing.TB, nodes int) *standIn {
	t.Helper()
	d := &standIn{nodes: nodes, events: make(chan string)}
	s := httptest.NewTLSServer(d)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	d.url = s.URL
	return d
}

// view runs "berth view" of the daemon.
func (d *standIn) view(t testing.TB) *viewed {
	t.Helper()
	return view(t, d.args(t)...)
}

func (d *standIn) args(t testing.TB) []string {
	return []string{"--daemon", d.url, "--insecure-skip-tls-verify", "--kubeconfig", kubeconfigFor(t, d.url)}
}

// ServeHTTP is for http.Handler.
func (d *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.asked.Add(1)
	now := time.Now().Add(d.off)
	rejected := records.Record{Time: now, Type: "Attempt", Pod: "shop/cart", Attempt: 1, Result: "Unschedulable", Message: "no room"}
	var answer any
	switch strings.TrimPrefix(r.URL.Path, api.Prefix) {
	case "watch":
		d.streams.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, ": alive\n\n")
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case event := <-d.events:
				_, _ = io.WriteString(w, event)
			case <-r.Context().Done():
				return
			}
		}
	case "capabilities":
		answer = api.Capabilities{Time: now, Identity: "berth-1", Leads: true}
	case "nodes":
		table := largeTable(d.nodes)
		table.Time = now
		answer = table
	case "summary":
		answer = api.Summary{Time: now, Nodes: d.nodes, LastDecision: &rejected, Rates: records.Rates{Attempts: map[string]int{}}, Blocking: []records.Blocking{}}
	case "history":
		answer = api.History{Every: 5, Times: []time.Time{}, Bound: []int{}, Evicted: []int{}}
	case "records":
		answer = api.RecordList{Records: []records.Record{rejected}}
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Problem","code":404,"reason":"NotFound","message":"there is no such thing"}`)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// recordEvent is the record of an attempt, newer than all others, as an event of a stream.
func recordEvent(n int) string {
	return fmt.Sprintf("id: a-%d\nevent: record\ndata: {\"time\":\"2126-01-01T00:00:00Z\",\"type\":\"Attempt\",\"pod\":\"shop/cart-%d\",\"attempt\":1,\"result\":\"Scheduled\",\"node\":\"node-%05d\",\"nodesTotal\":10000,\"nodesFeasible\":9000}\n\n", n, n, n%10_000)
}

// The page is on loopback alone: no other address of this machine leads to it.
func TestLoopbackAlone(t *testing.T) {
	v := view(t, "-f", "testdata/small.yaml")
	_, port, _ := strings.Cut(strings.TrimPrefix(v.base, "http://"), ":")
	others := []string{"127.0.0.2", "::1"} // the system's other names for this machine
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if of, is := a.(*net.IPNet); is && !of.IP.IsLoopback() {
			others = append(others, of.IP.String())
		}
	}
	for _, other := range others {
		if conn, err := net.Dial("tcp", net.JoinHostPort(other, port)); err == nil {
			_ = conn.Close()
			t.Errorf("%s answers", other)
		}
	}
	for _, flag := range []string{"--address", "--bind", "--host", "--listen"} {
		if status, _, errs := berth("", "view", "-f", "testdata/small.yaml", flag, "0.0.0.0"); status != exitInvalid || !strings.Contains(errs, "unknown flag") {
			t.Errorf("%s: %d %s", flag, status, errs)
		}
	}
}

// The address that is printed opens the page once. Nothing of it stays in the browser but a cookie that
// no script can read.
func TestStartInABrowser(t *testing.T) {
	c := startChromium(t)
	v := started(t, "-f", "testdata/small.yaml")
	c.open(v.address)
	c.until(`document.querySelector(".lead")`)
	var cookies struct {
		Cookies []struct {
			Name, Value, SameSite string
			HTTPOnly, Session     bool
		}
	}
	c.call("Network.getCookies", map[string]any{"urls": []string{v.base}}, &cookies)
	if len(cookies.Cookies) != 1 || !cookies.Cookies[0].HTTPOnly || cookies.Cookies[0].SameSite != "Strict" || !cookies.Cookies[0].Session {
		t.Fatalf("%+v", cookies.Cookies)
	}
	_, code, _ := strings.Cut(v.address, "once=")
	held := c.eval(`JSON.stringify([location.href, document.referrer, document.cookie, { ...localStorage }, { ...sessionStorage }, performance.getEntries().map(e => e.name), document.documentElement.outerHTML])`)
	for _, secret := range []string{code, cookies.Cookies[0].Value} {
		if strings.Contains(held, secret) {
			t.Errorf("the page holds a secret: %s", held)
		}
	}
	if href := c.eval(`location.href`); href != v.base+"/" && href != v.base+"/#/" {
		t.Errorf("it is at %s", href)
	}
	c.quiet()
	c.call("Page.navigate", map[string]any{"url": v.address}, nil)
	c.until(`document.body.innerText.includes("This address was used already")`)
}

// A page of another origin in the same browser, to which the cookie is sent as its host is the same,
// reaches nothing: it tries every route in each way that a page has.
func TestForeignPageInABrowser(t *testing.T) {
	d := newStandIn(t, 3)
	v := d.view(t)
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><h1>foreign</h1><main aria-busy=false></main>")
	}))
	defer foreign.Close()
	c := startChromium(t)
	c.enter(v)
	c.until(`document.querySelector("[aria-label=Connection]").innerText === "Live"`)
	c.open(foreign.URL)
	asked := d.asked.Load()
	var paths []string
	for _, what := range []string{"status", "capabilities", "records", "pending", "summary", "history", "nodes", "node", "groups", "group", "quotas", "find", "shadow", "why", "why/all", "blockers", "watch", "what-if", "fit", "simulate", "replay", "compare"} {
		paths = append(paths, v.base+api.Prefix+what)
	}
	list, _ := json.Marshal(append(paths, v.base+"/", v.base+"/page.js", v.base+"/icon.svg"))
	got := c.eval(`(async () => {
		const got = [], event = (e, what) => new Promise(done => { e.onload = () => { got.push(what); done() }; e.onerror = done; document.body.append(e) })
		for (const url of ` + string(list) + `) {
			for (const method of ["GET", "POST"]) for (const mode of ["cors", "no-cors"]) for (const type of ["text/plain", "application/json"]) {
				try {
					const r = await fetch(url, { method, mode, credentials: "include", headers: method === "POST" ? { "Content-Type": type } : {}, body: method === "POST" ? "{}" : undefined })
					const text = await r.text()
					if (text !== "" || r.type !== "opaque") got.push(method + " " + mode + " " + url + ": " + r.type + " " + text)
				} catch { /* refused */ }
			}
			await event(Object.assign(document.createElement("img"), { src: url }), "picture " + url)
			await event(Object.assign(document.createElement("script"), { src: url }), "script " + url)
			await new Promise(done => { const s = new EventSource(url, { withCredentials: true }); s.onopen = () => { got.push("stream " + url); done() }; s.onerror = () => { s.close(); done() } })
			const frame = Object.assign(document.createElement("iframe"), { name: "frame" })
			document.body.append(frame)
			await new Promise(done => { frame.onload = done; document.body.append(Object.assign(document.createElement("form"), { action: url, method: "POST", target: "frame", enctype: "text/plain" })); document.body.lastChild.submit() })
			await new Promise(done => { frame.onload = done; frame.src = url })
			if (frame.contentDocument) got.push("frame " + url)
			frame.remove()
		}
		return got.join("\n")
	})()`)
	if got != "" {
		t.Errorf("a foreign page has\n%s", got)
	}
	if n := d.asked.Load() - asked; n > 1 { // 1: the stream of the page that was left may be begun again
		t.Errorf("a foreign page asked the daemon %d times", n)
	}
	c.open(v.base + "/#/")
	c.until(`document.querySelector("[aria-label=Connection]").innerText === "Live"`)
}

// newTab opens another tab of the browser, which the next calls are about. It returns the tab before.
func (c *chromium) newTab() (before string) {
	c.Helper()
	before, c.session = c.session, ""
	var target struct{ TargetID string }
	c.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	c.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	c.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		c.call(domain+".enable", nil, nil)
	}
	return before
}

// All tabs of a browser have what one stream brings. When the tab that reads it is closed, another one
// reads on.
func TestTabsInABrowser(t *testing.T) {
	const counting = `window.streams = 0; { const Stream = EventSource; EventSource = class extends Stream { constructor(...of) { super(...of); streams++ } } }`
	d := newStandIn(t, 3)
	v := d.view(t)
	c := startChromium(t)
	c.atStart(counting)
	c.enter(v)
	live := `document.querySelector("[aria-label=Connection]").innerText === "Live"`
	c.until(live)
	first := c.newTab()
	c.atStart(counting)
	c.open(v.base + "/#/decisions")
	c.until(live)
	d.events <- recordEvent(7)
	c.until(`document.querySelector("[role=log]").innerText.includes("shop/cart-7")`)
	if n := c.eval(`streams`); n != "0" || d.streams.Load() != 1 {
		t.Errorf("the second tab opened %s streams, and the daemon has %d", n, d.streams.Load())
	}
	second := c.session
	c.session = first
	if n := c.eval(`streams`); n != "1" {
		t.Errorf("the first tab opened %s streams", n)
	}
	c.call("Page.navigate", map[string]any{"url": "about:blank"}, nil)
	c.session = second
	c.until(`streams === 1 && ` + live)
	d.events <- recordEvent(8)
	c.until(`document.querySelector("[role=log]").innerText.includes("shop/cart-8")`)
	c.quiet()
}

// The stream of decisions is shown as it comes, 500 at most, and stands still while it is paused.
func TestDecisionsInABrowser(t *testing.T) {
	d := newStandIn(t, 3)
	c := startChromium(t)
	c.enter(d.view(t))
	c.route("#/decisions")
	c.until(`document.querySelector("[role=log]").innerText.includes("shop/cart")`)
	shown := func(n int) string {
		return fmt.Sprintf(`document.querySelector("[role=log] li").innerText.includes("shop/cart-%d ")`, n)
	}
	n := 0
	more := func(many int) {
		for range many {
			n++
			d.events <- recordEvent(n)
		}
	}
	more(600)
	c.until(shown(600) + ` && document.querySelectorAll("[role=log] li").length === 500`)
	c.has("log", "Decisions")
	c.eval(`[...document.querySelectorAll("button")].find(b => b.innerText === "Pause").click()`)
	c.until(`[...document.querySelectorAll("button")].some(b => b.innerText === "Resume")`)
	d.events <- "event: counts\ndata: {\"queue\":{\"active\":9,\"backoff\":0,\"errorBackoff\":0,\"unschedulable\":0,\"gated\":0,\"inFlight\":0}}\n\n"
	more(3)
	c.eval(`new Promise(done => setTimeout(done, 300))`) // records are shown four times a second
	if c.eval(shown(600)) != "true" {
		t.Error("it moves while it is paused")
	}
	c.eval(`[...document.querySelectorAll("button")].find(b => b.innerText === "Resume").click()`)
	c.until(shown(603) + ` && document.querySelectorAll("[role=log] li").length === 500`)
	c.quiet()
}

// A cluster of no node, of one, and one whose clock is another's are shown in words.
func TestSmallClustersInABrowser(t *testing.T) {
	for n, want := range []string{"There is no node.", "1 node shown"} {
		d := newStandIn(t, n)
		d.off = -48 * time.Hour
		c := startChromium(t)
		c.enter(d.view(t))
		c.until(`/Last decision \d+ s ago/.test(document.querySelector("main").innerText)`)
		c.route("#/nodes")
		c.until(fmt.Sprintf(`document.querySelector("main").innerText.includes(%q)`, want))
		c.quiet()
	}
}

// A map is drawn once a frame however much happens in it. Its bitmap has a pixel for each node, and is not made
// anew while only what is seen of it changes. It is made of as many elements for 50,000 nodes as for 10,000.
func TestDrawsOnAMap(t *testing.T) {
	var elements [2]string
	for i, nodes := range []int{10_000, 50_000} {
		c := pageOf(t, nodes, false)
		c.eval(`document.querySelector("[role=grid]").focus()`)
		c.frame()
		begin := c.where()
		if painted := c.eval(fmt.Sprintf("pixels >= %d", nodes)); painted != "true" {
			t.Errorf("%d nodes have %s pixels", nodes, c.eval("pixels"))
		}
		elements[i] = c.eval(`document.querySelectorAll("*").length`)
		for _, steps := range []struct {
			of    string // what happens, in JavaScript
			draws int
		}{
			{`for (let i = 0; i < 20; i++) key("ArrowRight", true); await frame()`, 1},
			{`for (let i = 0; i < 20; i++) { key("ArrowRight", true); await frame() }`, 20},
			{`for (let i = 0; i < 20; i++) key("+", false); await frame()`, 1},
			{`for (let i = 0; i < 20; i++) { key("ArrowRight", false); await frame() }`, 20},
			{`await frame(); await frame()`, 0},
		} {
			got := c.eval(`(async () => {
				const grid = document.querySelector("[role=grid]"), key = (key, shiftKey) => grid.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey, bubbles: true })), frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)))
				drawn = pixels = 0
				` + steps.of + `
				return drawn + " " + pixels
			})()`)
			var draws, pixels int
			if _, err := fmt.Sscan(got, &draws, &pixels); err != nil || draws != steps.draws || pixels != 0 {
				t.Errorf("%d nodes, %s: %s draws and pixels", nodes, steps.of, got)
			}
		}
		if at := c.where(); at[0] == begin[0] || at[2] <= begin[2] {
			t.Errorf("from %v to %v", begin, at)
		}
		if again := c.eval(`document.querySelectorAll("*").length`); again != elements[i] {
			t.Errorf("%s elements become %s", elements[i], again)
		}
		c.quiet()
	}
	if elements[0] != elements[1] {
		t.Errorf("10,000 nodes are %s elements, and 50,000 %s", elements[0], elements[1])
	}
}

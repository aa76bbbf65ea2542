package tool

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/edge/api"
)

// has fails the test if the page has no element of the role with the name.
func (c *chromium) has(role, name string) {
	c.Helper()
	if c.named(role, name) == 0 {
		c.Errorf("%s: there is no %s %q in\n%s", c.eval("location.hash"), role, name, c.eval("document.querySelector('main').innerText"))
	}
}

// fits fails the test if the page is wider than its window.
func (c *chromium) fits() {
	c.Helper()
	if over := c.eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); over != "0" {
		c.Errorf("%s is %s pixels wider than its window", c.eval("location.hash"), over)
	}
}

// From the blockers of a pod one comes to the map, whose colours say why the pod does not fit on each
// node: in words in the legend, in the name of each cell, in a table and as groups, too.
func TestMapOfBlockersInABrowser(t *testing.T) {
	c := startChromium(t)
	v := view(t, "-f", "testdata/stuck.yaml", "--simulate")
	c.size(1280, 900, "light")
	c.enter(v)
	c.route("#/pod/default/cpu")
	c.until(`document.querySelector("[aria-label=Verdict]")`)
	c.has("link", "Show on the map")
	c.eval(`[...document.querySelectorAll("a")].find(a => a.innerText === "Show on the map").click()`)
	c.until(`location.hash === "#/nodes?by=why&pod=default%2Fcpu" && document.querySelector("[aria-label=Causes]")`)
	c.until(`document.querySelector("[aria-label=Fit]").innerText === "default/cpu fits none of 4 nodes."`)
	causes := c.eval(`document.querySelector("[aria-label=Causes]").innerText.replaceAll("\n", " ")`)
	for _, want := range []string{"A 2 nodes: Insufficient cpu (NodeResourcesFit)", "1 node: node(s) were unschedulable (NodeUnschedulable)", "1 node: node(s) had untolerated taint(s) (TaintToleration)"} {
		if !strings.Contains(causes, want) {
			t.Errorf("the legend has no %q: %s", want, causes)
		}
	}
	c.has("combobox", "Pod")
	c.eval(`document.querySelector("[role=grid]").focus()`)
	c.press("End")
	c.has("gridcell", "n3, zone b, cordoned, CPU 0%, memory 0%, pods 0 of 10, taints node.kubernetes.io/unschedulable:NoSchedule, does not fit: node(s) were unschedulable (NodeUnschedulable); also: node(s) had untolerated taint(s)")
	c.press("Home")
	c.has("gridcell", "n1, zone a, ready, CPU 75%, memory 0%, pods 2 of 10, does not fit: Insufficient cpu (NodeResourcesFit)")
	c.picture("why-map")
	if colours := c.eval(`(() => {
		const c = document.querySelector("canvas"), all = c.getContext("2d").getImageData(0, 0, c.width, c.height).data
		return [[213, 94, 0], [86, 180, 233], [240, 228, 66]].filter(([r, g, b]) => { for (let i = 0; i < all.length; i += 4) if (all[i] === r && all[i + 1] === g && all[i + 2] === b) return true; return false }).length
	})()`); colours != "3" {
		t.Errorf("%s of 3 colours of causes are on the map", colours)
	}
	c.eval(`(window.old = true, location.reload())`)
	c.until(`!window.old && document.querySelector("[aria-label=Fit]")?.innerText === "default/cpu fits none of 4 nodes."`)
	c.eval(`[...document.querySelectorAll("button")].find(b => b.innerText === "Show as table").click()`)
	c.until(`document.querySelector("table[aria-label=Nodes]")?.innerText.includes("does not fit: Insufficient cpu (NodeResourcesFit)")`)
	c.eval(`[...document.querySelectorAll("button")].find(b => b.innerText === "Show as table").click()`)
	c.route("#/nodes?by=why&group=why&pod=default/cpu")
	c.until(`document.querySelector("table[aria-label='Groups of nodes']")?.innerText.includes("A Insufficient cpu")`)

	c.route("#/nodes?by=why&pod=default/train-1")
	c.until(`document.querySelector("[aria-label=Fit]")?.innerText === "default/train-1 is on gpu1, and would fit 0 other nodes."`)
	c.until(`document.querySelector("[aria-label=Causes]").innerText.includes("the pod is here")`)
	c.route("#/nodes?by=why&pod=default/other")
	c.until(`document.querySelector("main").innerText.includes("No node was looked at for default/other: no profile has the schedulerName \"volcano\"")`)
	c.route("#/nodes?by=why")
	c.until(`document.querySelector("main").innerText.includes("Which pod?")`)
	c.eval(`(() => { const i = document.querySelector("input[list]"); i.value = "default/cpu"; i.dispatchEvent(new Event("change", { bubbles: true })) })()`)
	c.until(`location.hash === "#/nodes?by=why&pod=default%2Fcpu" && document.querySelector("[aria-label=Fit]")`)
	c.eval(`(() => { const s = document.querySelector("select"); s.value = "cpu"; s.dispatchEvent(new Event("change", { bubbles: true })) })()`)
	c.until(`location.hash === "#/nodes?by=cpu"`)
	c.quiet()
	c.route("#/nodes?by=why&pod=default/nobody")
	c.until(`document.querySelector("[role=alert]")?.innerText.includes("pod default/nobody: there is no such pod")`)
	for _, look := range []struct {
		width int
		theme string
	}{{1280, "dark"}, {320, "light"}, {320, "dark"}} {
		c.size(look.width, 800, look.theme)
		c.route("#/nodes?by=why&pod=default/cpu")
		c.until(`document.querySelector("[aria-label=Fit]")`)
		c.fits()
		c.picture("why-map-" + look.theme + map[bool]string{true: "-narrow"}[look.width == 320])
	}
}

// A record answers at any time of it on which nodes a pod did not fit: as it was then, not as it is at
// the end, and not before the pod was there.
func TestMapOfBlockersOfARecordInABrowser(t *testing.T) {
	c := startChromium(t)
	v := view(t, "--record", recorded(t))
	c.size(1280, 900, "light")
	c.enter(v)
	var r struct {
		From, To  time.Time
		Decisions []time.Time
	}
	v.get("replay", &r)
	decided := r.Decisions[len(r.Decisions)/2].Truncate(time.Millisecond).Add(time.Millisecond) // as the page has it: in whole milliseconds
	at := func(when time.Time) string { return "at=" + url.QueryEscape(when.Format("2006-01-02T15:04:05.000Z")) }
	var list api.RecordList
	if v.get("records?limit=1&reason=attempt&"+at(decided), &list); len(list.Records) != 1 {
		t.Fatalf("%+v", list)
	}
	pod, said := list.Records[0].Pod, map[string]bool{}
	for _, when := range []time.Time{r.From, decided, r.To} {
		var s api.Summary
		v.get("summary?"+at(when), &s)
		c.route("#/replay?" + at(when))
		c.until(fmt.Sprintf(`document.querySelector("main").innerText.includes("%d nodes with %d pods;")`, s.Nodes, s.Pods))
		c.route("#/nodes?by=why&pod=" + pod)
		var n api.NodeBlockers
		if code := v.get("blockers?pod="+pod+"&"+at(when), &n); code != http.StatusOK {
			said["unknown"] = true
			c.until(`document.querySelector("main").innerText.includes("there is no such pod")`)
			continue
		}
		text := fitText(n)
		said[text] = true
		c.until(fmt.Sprintf(`document.querySelector("[aria-label=Fit]")?.innerText === %q`, text))
	}
	if len(said) < 2 || !said["unknown"] {
		t.Errorf("at all times it is %v", said)
	}
}

// fitText is what the page says above the map of a pod, of its answer.
func fitText(n api.NodeBlockers) string {
	fitting := 0
	for i, of := range n.Blockers.Of {
		if of < 0 && n.Names[i] != n.Node {
			fitting++
		}
	}
	if n.Node == "" {
		return fmt.Sprintf("%s fits %d of %d nodes.", n.Pod, fitting, len(n.Names))
	}
	return fmt.Sprintf("%s is on %s, and would fit %d other nodes.", n.Pod, n.Node, fitting)
}

// What a change would lead to is shown as two maps, beside each other or one below the other, and as a
// table.
func TestMapsOfWhatIfInABrowser(t *testing.T) {
	c := startChromium(t)
	v := view(t, "-f", "testdata/stuck.yaml", "--simulate")
	c.size(1280, 1000, "light")
	c.enter(v)
	try := func() {
		t.Helper()
		c.route("#/what-if?do=drain%20n2%20%2C%20uncordon%20n3%20%2C%20add-nodes%201%20n1%20%2C%20remove%20gpu1")
		c.eval(`[...document.querySelectorAll("button")].find(b => b.innerText === "Try").click()`)
		c.until(`document.querySelector("table[aria-label='Nodes that change']")`)
	}
	try()
	c.has("region", "Nodes")
	c.has("grid", "Nodes before")
	c.has("grid", "Nodes after")
	c.has("heading", "Before")
	c.until(`document.querySelector("[aria-label=Changes]").innerText.includes("1 node: gone") && document.querySelector("[aria-label=Changes]").innerText.includes("1 node: added")`)
	c.picture("what-if-maps")
	table := c.eval(`document.querySelector("table[aria-label='Nodes that change']").innerText`)
	for _, want := range []string{"n1-copy-1\ta\tadded, 2 pods come\tnone → 75%", "gpu1\tb\tgone, 1 pod leaves\t25% → none", "n2\ta\tcordoned, 2 pods leave\t75% → 0%", "n3\tb\tuncordoned"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	c.eval(`document.querySelector("[role=grid][aria-label='Nodes after']").focus()`)
	c.press("Home")
	c.press("ArrowRight")
	c.press("ArrowRight")
	c.has("gridcell", "n2, zone a, before: ready, CPU 75%, memory 25%, pods 2; after: cordoned, CPU 0%, memory 0%, pods 0; cordoned, 2 pods leave")
	const places = `(() => { const [a, b] = [...document.querySelectorAll(".pair canvas")].map(c => c.getBoundingClientRect()); return a.top === b.top ? "beside" : b.top > a.bottom ? "below" : "over" })()`
	if where := c.eval(places); where != "beside" {
		t.Errorf("the map after is %s that before", where)
	}
	c.quiet()
	for _, look := range []struct {
		width int
		theme string
	}{{1280, "dark"}, {320, "light"}, {320, "dark"}} {
		c.size(look.width, 800, look.theme)
		c.until(`document.querySelector(".pair canvas").getBoundingClientRect().width <= ` + map[bool]string{true: "320", false: "1280"}[look.width == 320])
		c.fits()
		c.picture("what-if-maps-" + look.theme + map[bool]string{true: "-narrow"}[look.width == 320])
	}
	if where := c.eval(places); where != "below" {
		t.Errorf("in a narrow window the map after is %s that before", where)
	}

	file := filepath.Join(t.TempDir(), "change.html")
	if status, _, errs := berth("", "what-if", "-f", "testdata/stuck.yaml", "uncordon", "n3", "--html", file); status == exitInvalid {
		t.Fatal(errs)
	}
	c.open("file://" + file)
	c.has("grid", "Nodes after")
}

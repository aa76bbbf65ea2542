package tool

import (
	"strings"
	"testing"
)

// give gives the browser the cookie of the test's own client.
func (c *chromium) give(v *viewed) {
	c.Helper()
	c.call("Network.setCookie", map[string]any{"name": v.cookie().Name, "value": v.cookie().Value, "url": v.base, "httpOnly": true, "sameSite": "Strict"}, nil)
}

// enter opens the page with the cookie that the test's own client was given.
func (c *chromium) enter(v *viewed) {
	c.Helper()
	c.give(v)
	c.call("Page.navigate", map[string]any{"url": "about:blank"}, nil)
	c.console = nil
	c.open(v.base + "/#/")
}

// In a browser, each route has its names and roles, by which tests and screen readers find their
// way, and shows what the cluster is like.
func TestPageInABrowser(t *testing.T) {
	c := startChromium(t)
	v := view(t, "-f", "testdata/stuck.yaml", "--simulate")
	c.size(1280, 900, "light")
	c.open(v.base + "/")
	c.until(`document.querySelector("[role=alert]")?.innerText.includes("has not opened the address")`)
	c.enter(v)
	c.until(`document.querySelector(".lead")?.innerText.includes("17 pods wait")`)
	has := func(role, name string) {
		t.Helper()
		if c.named(role, name) == 0 {
			t.Errorf("%s: there is no %s %q", c.eval("location.hash"), role, name)
		}
	}
	for _, link := range []string{"Overview", "Nodes", "Queue", "Groups", "Decisions", "What if", "Replay", "Compare", "Skip to content"} {
		has("link", link)
	}
	has("navigation", "Main")
	has("status", "Connection")
	has("searchbox", "Find pod or node")
	has("radiogroup", "Theme")
	has("button", "Copy link")
	has("table", "Causes")
	c.until(`document.title === "Overview · Berth" && document.querySelectorAll("h1").length === 1`)
	c.until(`document.querySelector("[aria-label=Connection]").innerText === "Files"`)
	c.picture("overview")

	c.route("#/nodes")
	c.until(`document.activeElement === document.querySelector("h1")`)
	c.until(`document.querySelector("[aria-label=Map]").innerText === "4 nodes shown"`)
	has("grid", "Nodes")
	has("combobox", "Colour by")
	has("combobox", "Group by")
	has("button", "Show as table")
	has("gridcell", "n1, zone a, ready, CPU 75%, memory 0%, pods 2 of 10")
	c.eval(`document.querySelector("[role=grid]").focus()`)
	c.press("End")
	has("gridcell", "n3, zone b, cordoned, CPU 0%, memory 0%, pods 0 of 10, taints node.kubernetes.io/unschedulable:NoSchedule")
	c.picture("nodes")
	c.press("Enter")
	c.until(`location.hash === "#/node/n3" && document.querySelector("table[aria-label=Resources]")`)
	has("table", "Resources")
	c.picture("node")

	c.route("#/queue")
	c.until(`document.querySelector("table[aria-label=Pods]")`)
	has("tablist", "Places")
	for _, tab := range []string{"Active 0", "Backoff 0", "Unschedulable 15", "Gated 2", "In flight 0"} {
		has("tab", tab)
	}
	has("table", "Causes")
	c.picture("queue")

	c.route("#/pod/default/affinity")
	c.until(`document.querySelector("[aria-label=Verdict]")?.innerText.startsWith("Misconfigured: ")`)
	for _, region := range []string{"Attempts", "Blockers", "Scores", "Fixes", "Wakes on", "Preemption"} {
		has("region", region)
	}
	has("table", "Blockers")
	has("button", "Copy command")
	c.picture("pod")
	c.route("#/pod/default/cordoned")
	c.until(`document.querySelector("[aria-label=Verdict]")`)
	has("button", "Try in what-if")

	c.route("#/decisions")
	c.until(`document.querySelectorAll("[role=log] li").length > 10`)
	has("log", "Decisions")
	c.picture("decisions")

	c.route("#/what-if?do=" + "uncordon%20n3")
	has("textbox", "Change")
	c.eval(`[...document.querySelectorAll("button")].find(b => b.innerText === "Try").click()`)
	c.until(`document.querySelector("[aria-label=Outcome]")?.innerText.startsWith("uncordon n3:")`)
	for _, region := range []string{"Moved", "Without a node", "Not evicted", "Budgets", "Resources"} {
		has("region", region)
	}
	c.picture("what-if")

	c.eval(`document.activeElement.blur()`)
	c.press("/")
	c.until(`document.activeElement.type === "search"`)
	for _, key := range "gpu1" {
		c.press(string(key))
	}
	c.until(`document.querySelectorAll("[role=option]").length > 0`)
	has("listbox", "Results")
	c.press("Enter")
	c.until(`location.hash === "#/node/gpu1"`)
	c.eval(`history.back()`)
	c.until(`location.hash.startsWith("#/what-if")`)
	c.quiet()
	c.size(320, 700, "dark")
	for _, hash := range []string{"#/", "#/nodes", "#/queue", "#/groups", "#/pod/default/affinity", "#/what-if"} {
		c.route(hash)
		if over := c.eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); over != "0" {
			t.Errorf("%s is %s pixels wider than a window of 320", hash, over)
		}
		c.picture("narrow-" + strings.NewReplacer("#/", "", "/", "-").Replace(hash))
	}
}

// A gang that fits nowhere is listed with its minimum, and shows where it comes nearest.
func TestGroupsInABrowser(t *testing.T) {
	c := startChromium(t)
	v := view(t, "-f", "testdata/gang.yaml", "--expand", "--simulate", "--feature-gates", "GenericWorkload=true")
	c.size(1280, 900, "light")
	c.enter(v)
	c.route("#/groups")
	c.until(`document.querySelector("table[aria-label=Groups]")?.innerText.includes("default/train")`)
	c.picture("groups")
	c.eval(`document.querySelector("table[aria-label=Groups] a").click()`)
	c.until(`location.hash === "#/group/default/train"`)
	c.until(`document.querySelector("[aria-label=Group]")?.innerText === "0 of 3 pods placed, at least 3 at once."`)
	c.until(`document.querySelector("main").innerText.includes("All nodes (2 nodes): has room for 2 of 3. 0/2 nodes are available: 2 Insufficient cpu.")`)
	if c.named("table", "Members") != 1 || c.named("region", "Nearest placement") != 1 {
		t.Error("there is no table of members or no nearest placement")
	}
	c.picture("group")
	c.quiet()
}

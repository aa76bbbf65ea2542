package tool

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// looked is a view of the page that is looked at: when the condition holds, it shows what it is to
// show. press names a button that is pressed before.
type looked struct{ hash, title, press, until string }

// windows are those in which each view is looked at. The last one is a window of 1280 pixels at 200 %.
var windows = []struct {
	name          string
	width, height int
	scale         float64
	theme         string
}{
	{"light", 1280, 900, 1, "light"}, {"dark", 1280, 900, 1, "dark"},
	{"320 pixels, light", 320, 700, 1, "light"}, {"320 pixels, dark", 320, 700, 1, "dark"}, {"200 %", 640, 450, 2, "light"},
}

// Each view has its title and one heading, fits into each window, in light and dark, has no fault
// that axe finds, and is reached by the keyboard alone.
func TestEachView(t *testing.T) {
	for _, tt := range []struct {
		name  string
		args  func() []string
		views []looked
	}{
		{"files", func() []string { return []string{"-f", "testdata/stuck.yaml", "--simulate"} }, []looked{
			{"#/", "Overview", "", `document.querySelector("table[aria-label=Causes]")`},
			{"#/nodes?by=cpu&group=zone", "Nodes", "", `document.querySelector("[role=grid]")`},
			{"#/nodes?group=pool", "Nodes", "Show as table", `document.querySelector("table[aria-label=Nodes]")`},
			{"#/node/n1", "Node n1", "", `document.querySelector("table[aria-label=Resources]")`},
			{"#/node/nothing", "Node nothing", "", `document.querySelector("[role=alert]")`},
			{"#/queue", "Queue", "", `document.querySelector("table[aria-label=Pods]")`},
			{"#/pod/default/affinity", "Pod default/affinity", "", `document.querySelector("[aria-label=Verdict]")`},
			{"#/pod/default/cordoned", "Pod default/cordoned", "", `document.querySelector("[aria-label=Verdict]")`},
			{"#/decisions", "Decisions", "", `document.querySelectorAll("[role=log] li").length > 10`},
			{"#/groups", "Groups", "", `document.querySelector("main").innerText.includes("GenericWorkload")`},
			{"#/what-if?do=drain%20n1", "What if", "Try", `document.querySelector("[aria-label=Outcome]")`},
			{"#/replay", "Replay", "", `document.querySelector("[role=alert]")`},
			{"#/compare", "Compare", "", `document.querySelector("[role=alert]")`},
			{"#/nothing", "Not found", "", `document.querySelector("[role=alert]")`},
		}},
		{"gang", func() []string {
			return []string{"-f", "testdata/gang.yaml", "--expand", "--simulate", "--feature-gates", "GenericWorkload=true"}
		}, []looked{
			{"#/groups", "Groups", "", `document.querySelector("table[aria-label=Groups]")`},
			{"#/group/default/train", "Group default/train", "", `document.querySelector("table[aria-label=Members]")`},
		}},
		{"quotas", func() []string {
			return []string{"-f", "testdata/quotas.yaml", "--config", "testdata/quotas-config.yaml", "--simulate"}
		}, []looked{{"#/groups", "Groups", "", `document.querySelector("table[aria-label=Quotas]")`}}},
		{"record", func() []string { return []string{"--record", recorded(t), "--config", packed(t)} }, []looked{
			{"#/replay?at=2031-01-01T12%3A00%3A00.000Z", "Replay", "", `document.querySelector("[role=grid]") && document.querySelectorAll("polyline").length === 5`},
			{"#/compare", "Compare", "", `document.querySelectorAll("polyline.second").length === 5`},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := startChromium(t)
			c.enter(view(t, tt.args()...))
			c.axe()
			for _, w := range windows {
				if w.theme == "dark" && os.Getenv("BERTH_AXE") == "" {
					continue // only axe looks at colours
				}
				c.size(w.width, w.height, w.theme)
				c.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": w.width, "height": w.height, "deviceScaleFactor": w.scale, "mobile": false}, nil)
				for _, v := range tt.views {
					c.look(v, w.name)
				}
			}
			c.size(1280, 900, "light")
			for _, v := range tt.views {
				c.look(v, "keyboard")
				c.tab(v.hash)
			}
		})
	}
}

// axe gives the page the library axe, of the file that BERTH_AXE names.
func (c *chromium) axe() {
	c.Helper()
	path := os.Getenv("BERTH_AXE")
	if path == "" {
		c.Log(`axe does not look at the page: BERTH_AXE names no axe.min.js ("make page-axe" fetches it)`)
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		c.Fatal(err)
	}
	c.eval(string(text) + "; 0")
}

// look opens a view, and checks it in the window as it is.
func (c *chromium) look(v looked, window string) {
	c.Helper()
	c.route("#/nowhere")
	c.route(v.hash)
	if v.press != "" {
		c.eval(fmt.Sprintf(`[...document.querySelectorAll("main button")].find(b => b.innerText === %q).click()`, v.press))
	}
	c.until(v.until)
	c.until(`document.querySelector("main").getAttribute("aria-busy") === "false"`)
	if got := c.eval(`document.title + ", " + [...document.querySelectorAll("h1")].map(h => h.innerText).join()`); got != v.title+" · Berth, "+v.title {
		c.Errorf("%s: title and heading are %s", v.hash, got)
	}
	if over := c.eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); over != "0" {
		c.Errorf("%s, %s: it is %s pixels wider than the window", v.hash, window, over)
	}
	if n := c.eval(`document.querySelectorAll("*").length > 5000`); n != "false" {
		c.Errorf("%s, %s: it has more than 5,000 elements", v.hash, window)
	}
	c.picture(strings.NewReplacer("#/", "", "/", "-", "?", "-", "&", "-", "%", "", ",", "", " ", "-").Replace("view-" + v.hash + "-" + window))
	if os.Getenv("BERTH_AXE") == "" || window == "keyboard" {
		return
	}
	faults := c.eval(`axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], rules: { "target-size": { enabled: true } } })
		.then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ": " + n.html.slice(0, 200) + " " + n.failureSummary)).join("\n"))`)
	if faults != "" {
		c.Errorf("%s, %s: axe finds\n%s", v.hash, window, faults)
	}
}

// focusable returns in JavaScript the elements that the Tab key is to reach: of radio buttons and of
// tabs one.
const focusable = `[...document.querySelectorAll("a[href], button, input, select, textarea, [tabindex]")].filter(e =>
	e.tabIndex >= 0 && !e.disabled && e.checkVisibility() && (e.type !== "radio" || e.checked))`

// tab goes through the page by the Tab key: each element that can be used is reached, and seen to be.
func (c *chromium) tab(hash string) {
	c.Helper()
	c.eval(`window.toReach = new Set(` + focusable + `); document.activeElement.blur(); getSelection().removeAllRanges(); scrollTo(0, 0); 0`)
	n := c.eval(`toReach.size`)
	var most int
	if _, err := fmt.Sscan(n, &most); err != nil || most < 10 {
		c.Fatalf("%s: %s elements can be focused", hash, n)
	}
	for range most + 3 {
		c.press("Tab")
		unseen := c.eval(`(() => { const e = document.activeElement; if (e === document.body) return ""; toReach.delete(e)
			const box = e.getBoundingClientRect(), seen = getComputedStyle(e).outlineStyle !== "none" && box.bottom > 0 && box.top < innerHeight && box.right > 0
			return seen ? "" : e.outerHTML.slice(0, 200) })()`)
		if unseen != "" {
			c.Errorf("%s: it is not seen that this has the focus: %s", hash, unseen)
		}
	}
	if left := c.eval(`[...toReach].map(e => e.outerHTML.slice(0, 120)).join("\n")`); left != "" {
		c.Errorf("%s: the Tab key does not reach\n%s", hash, left)
	}
}

// Whoever plays a record for long keeps the page small and its frames short: nothing is left of the
// times that were shown.
func TestReplayStaysSmall(t *testing.T) {
	c := startChromium(t)
	c.size(1280, 900, "light")
	c.enter(view(t, "--record", recorded(t)))
	c.call("HeapProfiler.enable", nil, nil)
	c.route("#/replay")
	c.until(`document.querySelector("input[type=range]")`)
	play := func() (heap float64) {
		c.eval(`document.querySelector("input[type=range]").focus()`)
		c.press("Home")
		c.until(`document.querySelector("main").innerText.includes("0 nodes with 0 pods")`)
		c.eval(`[...document.querySelectorAll("button")].find(b => b.innerText === "Play").click()`)
		c.until(`Number(document.querySelector("input[type=range]").value) > Number(document.querySelector("input[type=range]").min) + 8 * 864000`)
		c.press("End")
		c.until(`/20 nodes with [1-9]/.test(document.querySelector("main").innerText)`)
		c.call("HeapProfiler.collectGarbage", nil, nil)
		var usage struct{ UsedSize float64 }
		c.call("Runtime.getHeapUsage", nil, &usage)
		return usage.UsedSize
	}
	play()
	first := play()
	c.eval(`window.frames_ = []; (() => { let last = performance.now(); const next = now => { frames_.push(now - last); last = now; requestAnimationFrame(next) }; requestAnimationFrame(next) })(); 0`)
	for range 3 {
		play()
	}
	last := play()
	if last > 1.1*first+1<<20 || last > 150<<20 { // 1 MiB: what a browser keeps of a page as small as this one varies
		t.Errorf("the heap grows from %.1f to %.1f MiB", first/(1<<20), last/(1<<20))
	}
	t.Logf("heap %.1f MiB, then %.1f; of the times between two frames %s ms is the 95th percentile", first/(1<<20), last/(1<<20), c.eval(`frames_.sort((a, b) => a - b)[Math.floor(frames_.length * 0.95)].toFixed(1)`))
	c.quiet()
}

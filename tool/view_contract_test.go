package tool

import (
	"fmt"
	"os"
	"path/filepath"
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
// that axe finds, is reached by the keyboard alone, and is the same once it is reloaded.
func TestEachView(t *testing.T) {
	if os.Getenv("BERTH_AXE") == "" {
		t.Log(`axe does not look at the page: BERTH_AXE names no axe.min.js ("make page-axe" fetches it)`)
	}
	for _, tt := range []struct {
		name  string
		args  func() []string // of view; of another command: it writes a page of one file
		views []looked
	}{
		{"files", func() []string { return []string{"-f", "testdata/stuck.yaml", "--simulate"} }, []looked{
			{"#/", "Overview", "", `document.querySelector("table[aria-label=Causes]")`},
			{"#/nodes?by=cpu&group=zone", "Nodes", "", `document.querySelector("[role=grid]")`},
			{"#/nodes?group=pool", "Nodes", "Show as table", `document.querySelector("table[aria-label=Nodes]")`},
			{"#/nodes?by=why&pod=default/cpu", "Nodes", "", `document.querySelector("[role=grid]") && document.querySelector("[aria-label=Fit]")`},
			{"#/nodes?by=why&group=why&pod=default/cordoned", "Nodes", "Show as table", `document.querySelector("table[aria-label=Nodes]")`},
			{"#/nodes?by=why", "Nodes", "", `document.querySelector("main").innerText.includes("Which pod?")`},
			{"#/fit", "Fit", "", `document.querySelector("main").innerText.includes("fit")`},
			{"#/queue?place=gated", "Queue", "Keyboard help", `document.querySelector("dialog[open]")`},
			{"#/node/n1", "Node n1", "", `document.querySelector("table[aria-label=Resources]")`},
			{"#/node/nothing", "Node nothing", "", `document.querySelector("[role=alert]")`},
			{"#/queue", "Queue", "", `document.querySelector("table[aria-label=Pods]")`},
			{"#/pod/default/affinity", "Pod default/affinity", "", `document.querySelector("[aria-label=Verdict]")`},
			{"#/pod/default/cordoned", "Pod default/cordoned", "", `document.querySelector("[aria-label=Verdict]")`},
			{"#/decisions", "Decisions", "", `document.querySelectorAll("[role=log] li").length > 10`},
			{"#/groups", "Groups", "", `document.querySelector("main").innerText.includes("GenericWorkload")`},
			{"#/what-if?do=drain%20n1", "What if", "Try", `document.querySelector("[aria-label=Outcome]")`},
			{"#/replay", "Replay", "", `document.querySelector("main .note pre")?.innerText === "berth record --to DIR\nberth view --record DIR"`},
			{"#/compare", "Compare", "", `document.querySelector("main .note pre")?.innerText === "berth record --to DIR\nberth view --record DIR --config NEW.yaml"`},
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
			{"#/replay?at=2030-01-01T00%3A00%3A00.000Z", "Replay", "", `document.querySelector("main").innerText.includes("The record begins later than the time that was asked for, at 2031-01-01")`},
			{"#/compare", "Compare", "", `document.querySelectorAll("polyline.second").length === 5`},
		}},
		{"what-if in a file", func() []string { return []string{"what-if", "-f", "testdata/stuck.yaml", "uncordon", "n3", "--html"} }, []looked{
			{"#/what-if", "What if", "", `document.querySelector("[aria-label=Outcome]")`},
		}},
		{"fit in a file", func() []string {
			return []string{"fit", "-f", "testdata/stuck.yaml", "--nodes-like", "cpu=64,memory=256Gi", "--html"}
		}, []looked{{"#/fit", "Fit", "", `document.querySelector("main pre")`}}},
		{"cluster in a file", func() []string {
			return []string{"view", "-f", "testdata/stuck.yaml", "--simulate", "--redact", "--export"}
		}, []looked{
			{"#/", "Overview", "", `document.querySelector("table[aria-label=Causes]") && document.querySelector("main").innerText.includes("The names in this file are redacted")`},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := startChromium(t)
			c.show(tt.args())
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
				c.reload(v)
			}
		})
	}
}

// show opens the page of "berth view" with the arguments, or the file that another command writes.
func (c *chromium) show(args []string) {
	c.Helper()
	if last := args[len(args)-1]; last == "--html" || last == "--export" {
		file := filepath.Join(c.TempDir(), "page.html")
		if status, _, errs := berth("", append(args, file)...); status == exitInvalid {
			c.Fatal(errs)
		}
		c.open("file://" + file)
		return
	}
	c.enter(view(c, args...))
}

// reload opens the view again, as whoever is given its address does.
func (c *chromium) reload(v looked) {
	c.Helper()
	hash := c.eval(`location.hash`)
	c.eval(`(window.old = true, location.reload())`)
	c.until(fmt.Sprintf(`!window.old && document.title === %q`, v.title+" · Berth"))
	if v.press == "" {
		c.until(v.until)
	}
	if now := c.eval(`location.hash`); now != hash {
		c.Errorf("%s becomes %s where it is opened again", hash, now)
	}
	if others := c.eval(`performance.getEntriesByType("resource").map(e => e.name).filter(name => !name.startsWith(location.origin + "/")).join()`); others != "" {
		c.Errorf("%s loads %s", hash, others)
	}
}

// axe gives the page the library axe, of the file that BERTH_AXE names, unless it has it.
func (c *chromium) axe() {
	c.Helper()
	text, err := os.ReadFile(os.Getenv("BERTH_AXE"))
	if err != nil {
		c.Fatal(err)
	}
	if c.eval("!window.axe") == "true" {
		c.eval(string(text) + "; 0")
	}
}

// look opens a view, and checks it in the window as it is.
func (c *chromium) look(v looked, window string) {
	c.Helper()
	c.eval(`document.querySelector("dialog[open]")?.close()`)
	c.route("#/nowhere")
	c.route(v.hash)
	if v.press != "" {
		c.eval(fmt.Sprintf(`[...document.querySelectorAll("button")].find(b => b.innerText === %q).click()`, v.press))
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
	c.axe()
	faults := c.eval(`axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], rules: { "target-size": { enabled: true } } })
		.then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ": " + n.html.slice(0, 200) + " " + n.failureSummary)).join("\n"))`)
	if faults != "" {
		c.Errorf("%s, %s: axe finds\n%s", v.hash, window, faults)
	}
}

// focusable returns in JavaScript the elements that the Tab key is to reach: of radio buttons and of
// tabs one, and while a dialog is open those in it.
const focusable = `[...(document.querySelector("dialog[open]") ?? document).querySelectorAll("a[href], button, input, select, textarea, [tabindex]")].filter(e =>
	e.tabIndex >= 0 && !e.disabled && e.checkVisibility() && (e.type !== "radio" || e.checked))`

// tab goes through the page by the Tab key: each element that can be used is reached, and seen to be.
func (c *chromium) tab(hash string) {
	c.Helper()
	left := c.notTabbed(hash)
	for range 2 { // an answer that comes meanwhile replaces what was to be reached
		if left != "" {
			left = c.notTabbed(hash)
		}
	}
	if left != "" {
		c.Errorf("%s: the Tab key does not reach\n%s", hash, left)
	}
}

// notTabbed presses Tab through the whole page and returns what it does not reach.
func (c *chromium) notTabbed(hash string) string {
	c.Helper()
	c.eval(`window.toReach = new Set(` + focusable + `); document.activeElement.blur(); getSelection().removeAllRanges(); scrollTo(0, 0); 0`)
	n := c.eval(`toReach.size`)
	var most int
	if _, err := fmt.Sscan(n, &most); err != nil || most < 4 && c.eval(`!document.querySelector("dialog[open]")`) == "true" || most < 1 {
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
	return c.eval(`[...toReach].map(e => e.outerHTML.slice(0, 120)).join("\n")`)
}

// Whoever plays a record for long keeps the page small: nothing is left of the times that were shown.
func TestReplayStaysSmall(t *testing.T) {
	c := startChromium(t)
	c.size(1280, 900, "light")
	c.enter(view(t, "--record", recorded(t)))
	c.call("HeapProfiler.enable", nil, nil)
	c.route("#/replay")
	c.until(`document.querySelector("input[type=range]")`)
	play := func() (s size) {
		c.eval(`document.querySelector("input[type=range]").focus()`)
		c.press("Home")
		c.until(`document.querySelector("main").innerText.includes("0 nodes with 0 pods")`)
		c.eval(`[...document.querySelectorAll("button")].find(b => b.innerText === "Play").click()`)
		c.until(`Number(document.querySelector("input[type=range]").value) > Number(document.querySelector("input[type=range]").min) + 8 * 864000`)
		c.press("End")
		c.until(`/20 nodes with [1-9]/.test(document.querySelector("main").innerText)`)
		return c.measure()
	}
	play()
	first := play()
	for range 3 {
		play()
	}
	last := play()
	if last.Heap > 1.1*first.Heap+1<<20 || last.Heap > 150<<20 { // 1 MiB: what a browser keeps of a page as small as this one varies
		t.Errorf("the heap grows from %.1f to %.1f MiB", first.Heap/(1<<20), last.Heap/(1<<20))
	}
	if last.Nodes > 1.1*first.Nodes+20 || last.Listeners > 1.1*first.Listeners+20 || last.Elements > first.Elements+20 || last.Elements > 5000 { // 20: the records that are shown differ
		t.Errorf("at first %+v, at last %+v", first, last)
	}
	c.quiet()
}

// size is how much a page holds once nothing is left that it does not need.
type size struct {
	Heap             float64 // bytes
	Elements         float64 // of the document
	Nodes, Listeners float64 // of all that is held, in the document or not
}

// measure returns the size of the page.
func (c *chromium) measure() (s size) {
	c.Helper()
	c.call("HeapProfiler.collectGarbage", nil, nil)
	var usage struct{ UsedSize float64 }
	c.call("Runtime.getHeapUsage", nil, &usage)
	var held struct{ Nodes, JSEventListeners float64 }
	c.call("Memory.getDOMCounters", nil, &held)
	s.Heap, s.Nodes, s.Listeners = usage.UsedSize, held.Nodes, held.JSEventListeners
	if _, err := fmt.Sscan(c.eval(`document.querySelectorAll("*").length`), &s.Elements); err != nil {
		c.Fatal(err)
	}
	return s
}

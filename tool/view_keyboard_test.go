package tool

import (
	"encoding/json"
	"fmt"
	"testing"
)

// drawings lets a page count what it draws on canvases: the times, and where the last bitmap came to
// lie and how many pixels it has.
const drawings = `window.drawn = 0; window.pixels = 0; window.last = ""
const draw = CanvasRenderingContext2D.prototype.drawImage, put = OffscreenCanvasRenderingContext2D.prototype.putImageData
CanvasRenderingContext2D.prototype.drawImage = function (bitmap, ...to) { drawn++; last = to.map(n => Math.round(n)).join(" "); return draw.call(this, bitmap, ...to) }
OffscreenCanvasRenderingContext2D.prototype.putImageData = function (image, ...to) { pixels += image.width * image.height; return put.call(this, image, ...to) }`

// atStart runs a script in each page before its own.
func (c *chromium) atStart(script string) {
	c.Helper()
	c.call("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": script}, nil)
}

// frame waits until what was asked for is drawn.
func (c *chromium) frame() {
	c.Helper()
	c.eval(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))`)
}

// where returns where the bitmap of the map lies: x, y, width and height.
func (c *chromium) where() (at [4]int) {
	c.Helper()
	c.frame()
	if _, err := fmt.Sscan(c.eval("last"), &at[0], &at[1], &at[2], &at[3]); err != nil {
		c.Fatal(err)
	}
	return at
}

// pressed presses a key with the modifiers of the protocol: 8 is Shift.
func (c *chromium) pressed(key string, modifiers int) {
	c.Helper()
	codes := map[string]int{"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
	for _, kind := range []string{"keyDown", "keyUp"} {
		c.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "windowsVirtualKeyCode": codes[key], "modifiers": modifiers}, nil)
	}
}

// The whole page is used by the keyboard alone: the skip link, help, the map, tabs, the theme, a
// change that is tried, and results that are found.
func TestKeyboardInABrowser(t *testing.T) {
	c := startChromium(t)
	c.size(1280, 900, "light")
	c.atStart(drawings)
	c.enter(view(t, "-f", "testdata/stuck.yaml", "--simulate"))
	focus := func(selector string) {
		t.Helper()
		c.eval(fmt.Sprintf(`document.querySelector(%q).focus()`, selector))
	}
	t.Run("skip link", func(t *testing.T) {
		c.eval(`document.activeElement.blur()`)
		c.press("Tab")
		c.until(`document.activeElement.innerText === "Skip to content"`)
		c.press("Enter")
		c.until(`document.activeElement === document.querySelector("h1")`)
	})
	t.Run("help", func(t *testing.T) {
		c.press("?")
		c.until(`document.querySelector("dialog[open]")?.contains(document.activeElement)`)
		c.has("dialog", "Keyboard help")
		c.press("Escape")
		c.until(`!document.querySelector("dialog")`)
		c.press("?")
		c.until(`document.querySelector("dialog[open]")`)
		c.press("Enter") // on Close
		c.until(`!document.querySelector("dialog")`)
		focus("input[type=search]")
		c.press("?")
		c.until(`document.activeElement.value === "?" && !document.querySelector("dialog")`)
		c.press("Escape")
	})
	t.Run("map", func(t *testing.T) {
		c.route("#/nodes?group=none")
		focus("[role=grid]")
		at := func() string {
			return c.eval(`(() => { const cell = document.querySelectorAll("[role=gridcell]"); return cell.length + " " + cell[0].getAttribute("aria-label").split(",")[0] + " " + (document.querySelector("[role=grid]").getAttribute("aria-activedescendant") === cell[0].id) })()`)
		}
		for _, step := range []struct{ key, node string }{{"Home", "gpu1"}, {"ArrowRight", "n1"}, {"ArrowRight", "n2"}, {"ArrowLeft", "n1"}, {"End", "n3"}, {"ArrowRight", "n3"}, {"Home", "gpu1"}, {"ArrowUp", "gpu1"}} {
			c.press(step.key)
			c.frame()
			if got := at(); got != "1 "+step.node+" true" {
				t.Errorf("after %s: %s", step.key, got)
			}
		}
		if size := c.eval(`(() => { const g = document.querySelector("[role=grid]"); return g.tabIndex + " " + (g.getAttribute("aria-rowcount") * g.getAttribute("aria-colcount") >= 4) + " " + g.querySelector("canvas").getAttribute("aria-hidden") })()`); size != "0 true true" {
			t.Error(size)
		}
		c.press("0")
		whole := c.where()
		c.press("+")
		larger := c.where()
		c.pressed("ArrowRight", 8)
		right := c.where()
		c.pressed("ArrowDown", 8)
		down := c.where()
		c.press("-")
		smaller := c.where()
		c.press("0")
		again := c.where()
		if larger[2] <= whole[2] || larger[3] <= whole[3] || right[0] != larger[0]-40 || right[1] != larger[1] || down[1] != right[1]-40 || smaller[2] >= larger[2] || again != whole {
			t.Errorf("whole %v, larger %v, right %v, down %v, smaller %v, whole again %v", whole, larger, right, down, smaller, again)
		}
		c.press("Enter")
		c.until(`location.hash === "#/node/gpu1"`)
	})
	t.Run("tabs", func(t *testing.T) {
		c.route("#/queue?place=unschedulable")
		c.until(`document.querySelector("table[aria-label=Pods]")`)
		focus("[role=tab][aria-selected=true]")
		for _, step := range []struct{ key, tab string }{{"ArrowRight", "Gated 2"}, {"ArrowRight", "In flight 0"}, {"ArrowRight", "All 17"}, {"ArrowLeft", "In flight 0"}, {"Home", "All 17"}, {"End", "In flight 0"}} {
			c.press(step.key)
			c.until(fmt.Sprintf(`document.activeElement.innerText === %q && document.activeElement.getAttribute("aria-selected") === "true" && document.querySelectorAll("[role=tab][aria-selected=true]").length === 1`, step.tab))
		}
		c.until(`document.querySelector("[role=tabpanel]").innerText.includes("No pod waits here")`)
	})
	t.Run("theme", func(t *testing.T) {
		focus("[name=theme]:checked")
		ink := c.eval(`getComputedStyle(document.querySelector("h1")).color`)
		c.press("ArrowRight")
		c.press("ArrowRight")
		c.until(`document.documentElement.dataset.theme === "dark" && document.activeElement.checked`)
		if dark := c.eval(`getComputedStyle(document.querySelector("h1")).color`); dark == ink {
			t.Errorf("light and dark are %s", dark)
		}
		c.eval(`(window.old = true, location.reload())`)
		c.until(`!window.old && document.documentElement?.dataset.theme === "dark"`)
	})
	t.Run("try", func(t *testing.T) {
		c.route("#/what-if")
		focus("main input[type=text]")
		for _, key := range "cordon n1" {
			c.press(string(key))
		}
		c.press("Enter")
		c.until(`document.querySelector("[aria-label=Outcome]")?.innerText.startsWith("cordon n1:") && location.hash === "#/what-if?do=cordon%20n1"`)
	})
	t.Run("results", func(t *testing.T) {
		c.eval(`document.activeElement.blur()`)
		c.press("/")
		c.press("n")
		c.until(`document.querySelector("[role=listbox]")?.innerText.includes("pod default/near")`) // the pods come later than the nodes
		first := c.eval(`document.querySelector("[role=option][aria-selected=true]").innerText`)
		c.press("ArrowDown")
		c.until(fmt.Sprintf(`document.querySelector("[role=option][aria-selected=true]").innerText !== %q && document.activeElement.getAttribute("aria-activedescendant") === document.querySelector("[role=option][aria-selected=true]").id`, first))
		c.press("ArrowUp")
		c.until(fmt.Sprintf(`document.querySelector("[role=option][aria-selected=true]").innerText === %q`, first))
		c.press("Escape")
		c.until(`document.querySelectorAll("[role=option]").length === 0`)
	})
	c.quiet()
}

// By the mouse, the map is moved by dragging and enlarged by the wheel where the pointer is.
func TestMouseOnTheMapInABrowser(t *testing.T) {
	c := startChromium(t)
	c.size(1280, 900, "light")
	c.atStart(drawings)
	c.enter(view(t, "-f", "testdata/stuck.yaml", "--simulate"))
	c.route("#/nodes?group=none")
	c.until(`document.querySelector("[role=gridcell]")`)
	var box struct{ X, Y float64 }
	if err := json.Unmarshal([]byte(c.eval(`JSON.stringify(document.querySelector("canvas").getBoundingClientRect())`)), &box); err != nil {
		t.Fatal(err)
	}
	mouse := func(kind string, x, y float64, buttons int, more map[string]any) {
		t.Helper()
		params := map[string]any{"type": kind, "x": box.X + x, "y": box.Y + y, "buttons": buttons, "button": "none", "clickCount": 0}
		for name, value := range more { // any order: names differ
			params[name] = value
		}
		c.call("Input.dispatchMouseEvent", params, nil)
	}
	left := map[string]any{"button": "left", "clickCount": 1}
	c.eval(`document.querySelector("[role=grid]").focus()`)
	whole := c.where()
	mouse("mouseWheel", 10, 10, 0, map[string]any{"deltaX": 0, "deltaY": -100})
	larger := c.where()
	mouse("mousePressed", 100, 100, 1, left)
	mouse("mouseMoved", 130, 110, 1, nil)
	mouse("mouseMoved", 150, 120, 1, nil)
	mouse("mouseReleased", 150, 120, 0, left)
	moved := c.where()
	if larger[2] <= whole[2] || moved != [4]int{larger[0] + 50, larger[1] + 20, larger[2], larger[3]} {
		t.Errorf("whole %v, larger %v, moved %v", whole, larger, moved)
	}
	if hash := c.eval(`location.hash`); hash != "#/nodes?group=none" {
		t.Errorf("a drag opens %s", hash)
	}
	mouse("mouseMoved", 60, 25, 0, nil)
	c.until(`document.querySelector("[role=gridcell]").getAttribute("aria-label").startsWith("gpu1,")`)
	mouse("mousePressed", 60, 25, 1, left)
	mouse("mouseReleased", 60, 25, 0, left)
	c.until(`location.hash === "#/node/gpu1"`)
	c.quiet()
}

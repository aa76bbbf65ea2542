package tool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// What the benchmarks of the page show: so many nodes, and a daemon that sends so many records a second
// and, four times a second, nodes that changed.
const (
	benchNodes     = 10_000
	benchRecords   = 1000
	benchFrames    = 300
	benchChanges   = 250 // nodes each time
	benchEvery     = 250 * time.Millisecond
	benchMostNodes = 50_000
)

// busy sends what a busy daemon does, until the benchmark ends.
func (d *standIn) busy(b testing.TB) {
	table := largeTable(d.nodes)
	go func() {
		every := time.NewTicker(benchEvery)
		defer every.Stop()
		for n := 0; ; {
			select {
			case <-every.C:
			case <-b.Context().Done():
				return
			}
			changed, at := *table, n%(d.nodes-benchChanges)
			changed.Whole, changed.Revision = false, fmt.Sprintf("a-%d", n+2)
			changed.Names, changed.Ready, changed.Cordoned = table.Names[at:at+benchChanges], table.Ready[at:at+benchChanges], table.Cordoned[at:at+benchChanges]
			body, _ := json.Marshal(changed)
			var events strings.Builder
			for range int(benchEvery * benchRecords / time.Second) {
				n++
				events.WriteString(recordEvent(n))
			}
			fmt.Fprintf(&events, "event: nodes\ndata: %s\n\n", body)
			select {
			case d.events <- events.String():
			case <-b.Context().Done():
				return
			}
		}
	}()
}

// pageOf opens the page of a daemon of so many nodes that is busy, if it is to be.
func pageOf(b testing.TB, nodes int, busy bool) *chromium {
	b.Helper()
	d := newStandIn(b, nodes)
	c := startChromium(b)
	c.size(1280, 900, "light")
	c.atStart(drawings)
	c.enter(d.view(b))
	c.route("#/nodes?group=none")
	c.until(`document.querySelector("[role=gridcell]") && drawn > 0`)
	if busy {
		d.busy(b)
	}
	return c
}

// numbers returns an array of JavaScript, sorted.
func (c *chromium) numbers(expression string) (list []float64) {
	c.Helper()
	if err := json.Unmarshal([]byte(c.eval("(async () => JSON.stringify("+expression+"))()")), &list); err != nil || len(list) == 0 {
		c.Fatal(expression, err, list)
	}
	slices.Sort(list)
	return list
}

// part returns the value of a sorted list that a part of it does not exceed.
func part(list []float64, of float64) float64 {
	return list[min(int(of*float64(len(list))), len(list)-1)]
}

// BenchmarkPageOpens is the page from its address to its map, without a cache: when it paints first, and
// when all nodes are drawn.
func BenchmarkPageOpens(b *testing.B) {
	const complete = `window.complete = 0
const whole = OffscreenCanvasRenderingContext2D.prototype.putImageData
OffscreenCanvasRenderingContext2D.prototype.putImageData = function (image, ...to) { if (!complete && image.width * image.height >= %d) requestAnimationFrame(() => { complete = performance.now() }); return whole.call(this, image, ...to) }`
	c := pageOf(b, benchNodes, false)
	c.atStart(fmt.Sprintf(complete, benchNodes))
	c.call("Network.enable", nil, nil)
	c.call("Network.setCacheDisabled", map[string]any{"cacheDisabled": true}, nil)
	var first, map_ []float64
	for b.Loop() {
		c.eval(`(window.old = true, location.reload())`)
		c.until(`!window.old && window.complete`)
		first = append(first, c.numbers(`performance.getEntriesByName("first-contentful-paint").map(e => e.startTime)`)...)
		map_ = append(map_, c.numbers(`[complete]`)...)
	}
	slices.Sort(first)
	slices.Sort(map_)
	b.ReportMetric(part(first, 0.5), "first-paint-ms")
	b.ReportMetric(part(map_, 0.5), "map-complete-ms")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkPagePans moves and enlarges the map while the daemon is busy: the times between two frames,
// and those of the page's own drawing in each.
func BenchmarkPagePans(b *testing.B) {
	for _, nodes := range []int{benchNodes, benchMostNodes} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			c := pageOf(b, nodes, true)
			c.call("Performance.enable", nil, nil)
			script := func() float64 {
				var m struct {
					Metrics []struct {
						Name  string
						Value float64
					}
				}
				c.call("Performance.getMetrics", nil, &m)
				for _, of := range m.Metrics {
					if of.Name == "ScriptDuration" {
						return 1000 * of.Value
					}
				}
				b.Fatal("the browser does not say how long scripts ran")
				return 0
			}
			var frames []float64
			spent := 0.0
			for b.Loop() {
				before := script()
				frames = append(frames, c.numbers(fmt.Sprintf(`await new Promise(done => {
					const grid = document.querySelector("[role=grid]"), times = [], keys = [["ArrowRight", true], ["ArrowDown", true], ["+", false], ["ArrowLeft", true], ["ArrowUp", true], ["-", false]]
					const next = now => {
						times.push(now)
						if (times.length > %d) { done(times.slice(1).map((t, i) => t - times[i])); return }
						const [key, shiftKey] = keys[times.length %% keys.length]
						grid.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey, bubbles: true }))
						requestAnimationFrame(next)
					}
					requestAnimationFrame(next)
				})`, benchFrames))...)
				spent += script() - before
			}
			slices.Sort(frames)
			b.ReportMetric(part(frames, 0.5), "frame-p50-ms")
			b.ReportMetric(part(frames, 0.95), "frame-p95-ms")
			b.ReportMetric(spent/float64(len(frames)), "script-ms/frame")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkPageAnswersKeys presses keys on the map while the daemon is busy: from the press to the
// frame that shows it.
func BenchmarkPageAnswersKeys(b *testing.B) {
	c := pageOf(b, benchNodes, true)
	c.eval(`document.querySelector("[role=grid]").focus()
		window.waits = []; addEventListener("keydown", e => { requestAnimationFrame(() => { const channel = new MessageChannel(); channel.port1.onmessage = () => waits.push(performance.now() - e.timeStamp); channel.port2.postMessage(0) }) }, true)`)
	for b.Loop() {
		for range 50 {
			c.press("ArrowRight")
		}
	}
	c.frame()
	waits := c.numbers("waits")
	b.ReportMetric(part(waits, 0.5), "paint-p50-ms")
	b.ReportMetric(part(waits, 0.95), "paint-p95-ms")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkPageStaysOpen is a minute of the page before a busy daemon, on its map and on the
// decisions in turn: what the page holds after the first minutes and at the end, and what comes in one.
func BenchmarkPageStaysOpen(b *testing.B) {
	const early = 5 // minutes, after which the heap is compared
	c := pageOf(b, benchNodes, true)
	c.call("HeapProfiler.enable", nil, nil)
	c.call("Network.enable", nil, nil)
	var first, last size
	minutes, began := 0, c.bytes()
	for b.Loop() {
		c.route([]string{"#/decisions", "#/nodes?group=none"}[minutes%2])
		c.eval(`new Promise(done => setTimeout(done, 55000))`)
		last = c.measure()
		if minutes++; minutes <= early {
			first = last
		}
	}
	b.ReportMetric(first.Heap/(1<<20), "heap-early-MiB")
	b.ReportMetric(last.Heap/(1<<20), "heap-MiB")
	b.ReportMetric(last.Elements, "elements")
	b.ReportMetric(float64(c.bytes()-began)/float64(minutes), "bytes/min")
	b.ReportMetric(0, "ns/op")
}

// bytes returns how many bytes came.
func (c *chromium) bytes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.came
}

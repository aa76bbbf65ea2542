package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
)

// The plot's size and the room around it for labels, in pixels.
const (
	plotWidth, plotHeight         = 860, 500
	plotLeft, plotRight           = 76, 226
	plotTop, plotBottom           = 44, 56
	labelHeight           float64 = 15
)

// style follows the reader's light or dark theme.
const style = `<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-size: 15px; font-weight: 600 }
.grid { stroke: #d0d7de; stroke-width: 1 }
.berth { stroke: #0969da; fill: #0969da }
.kube-scheduler { stroke: #bc4c00; fill: #bc4c00 }
polyline { fill: none !important; stroke-width: 2.2 }
.turn { stroke-dasharray: 9 4 } .unique { stroke-dasharray: 2 4 }
text.berth, text.kube-scheduler { stroke: none }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .grid { stroke: #30363d }
  .berth { stroke: #58a6ff; fill: #58a6ff } .kube-scheduler { stroke: #f0883e; fill: #f0883e }
}
</style>`

var (
	patternNames   = map[string]string{Repeated: "one class", InTurn: "150 classes in turn", Unique: "classes never repeat"}
	schedulerNames = map[string]string{Berth: "Berth", KubeScheduler: "kube-scheduler"}
)

// axis maps a logarithmic range of whole decades to pixels.
type axis struct {
	low, high int // powers of ten
	from, to  float64
}

func newAxis(values []float64, from, to float64) axis {
	low, high := int(math.Floor(math.Log10(slices.Min(values)))), int(math.Ceil(math.Log10(slices.Max(values))))
	return axis{low, max(high, low+1), from, to}
}

func (a axis) at(value float64) float64 {
	return a.from + (a.to-a.from)*(math.Log10(value)-float64(a.low))/float64(a.high-a.low)
}

// curve is what one scheduler does in one pattern, by nodes.
type curve struct {
	scheduler, pattern string
	points             []Point
	label              float64 // where its label goes
}

func curves(points []Point) []*curve {
	var all []*curve
	for _, p := range points {
		i := slices.IndexFunc(all, func(c *curve) bool { return c.scheduler == p.Scheduler && c.pattern == p.Pattern })
		if i < 0 {
			i = len(all)
			all = append(all, &curve{scheduler: p.Scheduler, pattern: p.Pattern})
		}
		all[i].points = append(all[i].points, p)
	}
	for _, c := range all {
		slices.SortFunc(c.points, func(a, b Point) int { return cmp.Compare(a.Nodes, b.Nodes) })
	}
	return all
}

// plot draws the cost of a decision against the number of nodes, both
// logarithmic, as an SVG.
func plot(points []Point) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="Cost of a decision against the number of nodes">`+"\n", plotWidth, plotHeight)
	fmt.Fprintln(&b, style)
	fmt.Fprintf(&b, `<text class="title" x="%d" y="24">Cost of a decision, in process, by number of nodes</text>`+"\n", plotLeft)
	if len(points) > 0 {
		draw(&b, points)
	}
	fmt.Fprintln(&b, "</svg>")
	return b.Bytes()
}

func draw(b *bytes.Buffer, points []Point) {
	var nodes, costs []float64
	for _, p := range points {
		nodes, costs = append(nodes, float64(p.Nodes)), append(costs, p.Micros)
	}
	x := newAxis(nodes, plotLeft, plotWidth-plotRight)
	y := newAxis(costs, plotHeight-plotBottom, plotTop)
	for power := x.low; power <= x.high; power++ {
		at := x.at(math.Pow10(power))
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, at, plotTop, at, plotHeight-plotBottom)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", at, plotHeight-plotBottom+20, thousands(power))
	}
	for power := y.low; power <= y.high; power++ {
		at := y.at(math.Pow10(power))
		fmt.Fprintf(b, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`, plotLeft, at, plotWidth-plotRight, at)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", plotLeft-8, at+4, span(power))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">nodes</text>`+"\n", (plotLeft+plotWidth-plotRight)/2, plotHeight-14)
	all := curves(points)
	for _, c := range all {
		c.draw(b, x, y)
	}
	spread(all)
	for _, c := range all {
		end := x.at(float64(c.points[len(c.points)-1].Nodes))
		fmt.Fprintf(b, `<text class="%s" x="%.1f" y="%.1f">%s, %s</text>`+"\n", c.scheduler, end+9, c.label+4, schedulerNames[c.scheduler], patternNames[c.pattern])
	}
}

func (c *curve) draw(b *bytes.Buffer, x, y axis) {
	fmt.Fprintf(b, `<polyline class="%s %s" points="`, c.scheduler, c.pattern)
	for _, p := range c.points {
		c.label = y.at(p.Micros)
		fmt.Fprintf(b, "%.1f,%.1f ", x.at(float64(p.Nodes)), c.label)
	}
	fmt.Fprintln(b, `"/>`)
	for _, p := range c.points {
		fmt.Fprintf(b, `<circle class="%s" cx="%.1f" cy="%.1f" r="3"><title>%d nodes: %.2f µs</title></circle>`+"\n",
			c.scheduler, x.at(float64(p.Nodes)), y.at(p.Micros), p.Nodes, p.Micros)
	}
}

// spread moves labels apart that would cover each other.
func spread(all []*curve) {
	byLabel := slices.Clone(all)
	slices.SortFunc(byLabel, func(a, b *curve) int { return cmp.Compare(a.label, b.label) })
	for i := 1; i < len(byLabel); i++ {
		byLabel[i].label = max(byLabel[i].label, byLabel[i-1].label+labelHeight)
	}
}

func thousands(power int) string {
	switch {
	case power >= 6:
		return fmt.Sprintf("%.0f M", math.Pow10(power-6))
	case power >= 3:
		return fmt.Sprintf("%.0f,000", math.Pow10(power-3))
	}
	return fmt.Sprintf("%.0f", math.Pow10(power))
}

// span names a power of ten of microseconds.
func span(power int) string {
	switch {
	case power >= 6:
		return fmt.Sprintf("%.0f s", math.Pow10(power-6))
	case power >= 3:
		return fmt.Sprintf("%.0f ms", math.Pow10(power-3))
	case power >= 0:
		return fmt.Sprintf("%.0f µs", math.Pow10(power))
	}
	return fmt.Sprintf("%.0f ns", math.Pow10(power+3))
}

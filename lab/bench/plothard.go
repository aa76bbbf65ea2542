package bench

import (
	"bytes"
	"fmt"
	"math"
)

// hardStyle adds to style what tells the schedulers of a hard world apart.
const hardStyle = `<style>
.kube-scheduler-all { stroke: #8250df; fill: #8250df }
text.kube-scheduler-all { stroke: none }
line.span { stroke-width: 3 }
@media (prefers-color-scheme: dark) { .kube-scheduler-all { stroke: #d2a8ff; fill: #d2a8ff } }
</style>`

var hardNames = map[string]string{Berth: "Berth", KubeScheduler: "kube-scheduler, a sample of the nodes", KubeSchedulerAll: "kube-scheduler, all nodes"}

const hardRowHeight = 22

// plotHard draws, by mix and scheduler, the cost of a decision: a bar from the median
// to the 99th percentile, a dot for the mean, a tick for the most. The axis is
// logarithmic.
func plotHard(runs []HardRun) []byte {
	var b bytes.Buffer
	mixes, height := 0, plotTop
	var costs []float64
	for i, r := range runs {
		if i == 0 || runs[i-1].Mix != r.Mix {
			mixes++
		}
		costs = append(costs, max(1, r.P50Micros), max(1, r.MaxMicros))
	}
	height += len(runs)*hardRowHeight + mixes*hardRowHeight/2
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="Cost of a decision in hard worlds">`+"\n", plotWidth, height+plotBottom+len(hardNames)*hardRowHeight)
	fmt.Fprintln(&b, style)
	fmt.Fprintln(&b, hardStyle)
	fmt.Fprintf(&b, `<text class="title" x="%d" y="24">Cost of a decision in hard worlds: median to 99th percentile, mean (dot), most (tick)</text>`+"\n", 16)
	if len(runs) > 0 {
		drawHard(&b, runs, newAxis(costs, 120, plotWidth-30), height)
	}
	fmt.Fprintln(&b, "</svg>")
	return b.Bytes()
}

func drawHard(b *bytes.Buffer, runs []HardRun, x axis, bottom int) {
	for power := x.low; power <= x.high; power++ {
		at := x.at(math.Pow10(power))
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, at, plotTop-8, at, bottom)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", at, bottom+18, span(power))
	}
	y := plotTop
	for i := range runs {
		r := &runs[i]
		if i == 0 || runs[i-1].Mix != r.Mix {
			y += hardRowHeight / 2
			fmt.Fprintf(b, `<text x="16" y="%d">%s</text>`+"\n", y+4, r.Mix)
		}
		at := func(micros float64) float64 { return x.at(max(1, micros)) }
		fmt.Fprintf(b, `<line class="span %s" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, r.Scheduler, at(r.P50Micros), y, at(r.P99Micros), y)
		fmt.Fprintf(b, `<line class="%s" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, r.Scheduler, at(r.MaxMicros), y-5, at(r.MaxMicros), y+5)
		fmt.Fprintf(b, `<circle class="%s" cx="%.1f" cy="%d" r="5"><title>%s, %s: %.0f µs</title></circle>`+"\n", r.Scheduler, at(r.Micros), y, r.Mix, hardNames[r.Scheduler], r.Micros)
		y += hardRowHeight
	}
	for i, scheduler := range []string{Berth, KubeScheduler, KubeSchedulerAll} {
		fmt.Fprintf(b, `<text class="%s" x="120" y="%d">%s</text>`+"\n", scheduler, bottom+plotBottom+i*hardRowHeight, hardNames[scheduler])
	}
}

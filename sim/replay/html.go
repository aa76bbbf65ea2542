package replay

import (
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

// HTML writes the comparison as a page that stands alone.
func (c *Comparison) HTML(w io.Writer) error {
	type row struct{ What, A, B string }
	page := struct {
		*Comparison
		Title  string
		Rows   []row
		Charts []template.HTML
		Lists  []list
	}{Comparison: c, Title: fmt.Sprintf("%s to %s", clock(c.From), clock(c.To))}
	b := c.B.cells()
	for i, cell := range c.A.cells() {
		page.Rows = append(page.Rows, row{cell[0], cell[1], b[i][1]})
	}
	for _, chart := range []struct {
		title string
		share bool
		value func(*Sample) float64
	}{
		{"Pods that wait", false, func(s *Sample) float64 { return float64(s.Pending) }},
		{"CPU requested, of what nodes offer", true, func(s *Sample) float64 { return s.CPU }},
		{"Memory requested, of what nodes offer", true, func(s *Sample) float64 { return s.Memory }},
		{"Free CPU on nodes where a pod of average size does not fit", true, func(s *Sample) float64 { return s.Stranded }},
		{"Nodes without pods but those of DaemonSets, and static ones", false, func(s *Sample) float64 { return float64(s.Empty) }},
	} {
		page.Charts = append(page.Charts, c.chart(chart.title, chart.share, chart.value))
	}
	page.Lists = []list{
		c.workloadList("Workloads that are worse under B", worse), c.workloadList("Workloads that are better under B", better),
		listOf("Elsewhere under B", c.Elsewhere), listOf("Placed under A alone", c.OnlyA), listOf("Placed under B alone", c.OnlyB),
		{"Preempted under A alone", c.EvictedA, len(c.EvictedA)}, {"Preempted under B alone", c.EvictedB, len(c.EvictedB)},
		{"Empty at the end under A alone", c.EmptyA, len(c.EmptyA)}, {"Empty at the end under B alone", c.EmptyB, len(c.EmptyB)},
	}
	for i := range page.Lists {
		if l := &page.Lists[i]; len(l.Lines) > listed {
			l.Lines = l.Lines[:listed]
		}
	}
	return pageTemplate.Execute(w, page)
}

// listed is how many pods a list of the page names.
const listed = 500

type list struct {
	Title string
	Lines []string
	Total int
}

func listOf(title string, all []Move) list {
	l := list{Title: title, Total: len(all)}
	for _, m := range all {
		l.Lines = append(l.Lines, fmt.Sprintf("%s: %s, %s", m.Pod, node(m.A), node(m.B)))
	}
	return l
}

// workloadList lists the workloads with the verdict.
func (c *Comparison) workloadList(title, verdict string) list {
	l := list{Title: title}
	for i := range c.Workloads {
		if w := &c.Workloads[i]; w.Verdict == verdict {
			l.Total++
			l.Lines = append(l.Lines, fmt.Sprintf("%s: %s; %s, %d elsewhere; without a node %s; preempted %s; longest wait %s; on one node %s; in one zone %s", w.Workload, w.Because, plural(w.Pods, "pod"),
				w.Elsewhere, both(w.A.NoNode, w.B.NoNode), both(w.A.Preempted, w.B.Preempted), both(seconds(w.A.WaitMax), seconds(w.B.WaitMax)), both(w.A.OnNode, w.B.OnNode), both(w.A.InZone, w.B.InZone)))
		}
	}
	return l
}

// Sizes of a chart.
const (
	width, height = 640, 180
	left, bottom  = 48, 20
)

// chart draws the value over time for both sides.
func (c *Comparison) chart(title string, isShare bool, value func(*Sample) float64) template.HTML {
	most := 0.0
	for _, s := range [][]Sample{c.A.Samples, c.B.Samples} {
		for i := range s {
			most = max(most, value(&s[i]))
		}
	}
	label := func(x float64) string { return fmt.Sprintf("%.0f", x) }
	if isShare {
		most, label = 1, func(x float64) string { return fmt.Sprintf("%.0f%%", 100*x) }
	}
	most = max(most, 1e-9)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, height, template.HTMLEscapeString(title))
	for i := range 5 {
		y := (height - bottom) * i / 4
		fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" class="grid"/><text x="%d" y="%d" class="axis" text-anchor="end">%s</text>`,
			left, y, width, y, left-4, max(y, 10), label(most*float64(4-i)/4))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" class="axis">%s</text><text x="%d" y="%d" class="axis" text-anchor="end">%s</text>`,
		left, height-4, c.From.UTC().Format("15:04:05"), width, height-4, c.To.UTC().Format("15:04:05"))
	for i, s := range [][]Sample{c.A.Samples, c.B.Samples} {
		fmt.Fprintf(&b, `<polyline class="%s" points="%s"/>`, []string{"a", "b"}[i], c.points(s, most, value))
	}
	b.WriteString("</svg>")
	return template.HTML(fmt.Sprintf("<figure><figcaption>%s</figcaption>%s</figure>", template.HTMLEscapeString(title), b.String())) // #nosec G203 -- made of numbers and constants
}

func (c *Comparison) points(samples []Sample, most float64, value func(*Sample) float64) string {
	whole := max(c.To.Sub(c.From).Seconds(), 1e-9)
	var points []string
	for i := range samples {
		x := left + (width-left)*min(1, samples[i].Time.Sub(c.From).Seconds()/whole)
		points = append(points, fmt.Sprintf("%.1f,%.1f", x, float64(height-bottom)*(1-value(&samples[i])/most)))
	}
	return strings.Join(slices.Compact(points), " ")
}

var pageTemplate = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>berth compare</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1c2733; background: #fff }
table { border-collapse: collapse } td, th { padding: .2rem 1.2rem .2rem 0; text-align: right; font-variant-numeric: tabular-nums }
td:first-child, th:first-child { text-align: left }
th { border-bottom: 1px solid #9aa7b4 } figure { margin: 1.5rem 0 } figcaption { font-weight: 600 }
svg { width: 100%; height: auto } .grid { stroke: #dfe5ea } .axis { font-size: 10px; fill: #5b6b7a }
polyline { fill: none; stroke-width: 1.5 } .a { stroke: #1f6fb2 } .b { stroke: #d1541f; stroke-dasharray: 5 2 }
.ka { color: #1f6fb2 } .kb { color: #d1541f } details { margin: .5rem 0 } pre { font-size: 13px }
</style></head><body>
<h1>One day under two configurations</h1>
<p>{{.Title}}. <strong class="ka">A: {{.A.Name}}</strong> (solid), <strong class="kb">B: {{.B.Name}}</strong> (dashed).</p>
{{range .Notes}}<p><strong>Note: {{.}}.</strong></p>
{{end}}<table><tr><th></th><th class="ka">A</th><th class="kb">B</th></tr>
{{range .Rows}}<tr><td>{{.What}}</td><td>{{.A}}</td><td>{{.B}}</td></tr>
{{end}}</table>
<p>{{.Same}} pods are on the same node under both, {{len .Elsewhere}} elsewhere, {{len .OnlyA}} are placed under A alone, {{len .OnlyB}} under B alone.</p>
{{range .Charts}}{{.}}
{{end}}{{range .Lists}}{{if .Lines}}<details><summary>{{.Title}}: {{.Total}}</summary><pre>{{range .Lines}}{{.}}
{{end}}</pre></details>
{{end}}{{end}}</body></html>
`))

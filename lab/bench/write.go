package bench

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// write writes the result as a table or as JSON.
func (r *Result) write(w io.Writer, format string) error {
	if format == "json" {
		return writeJSON(w, r)
	}
	return r.writeTable(w)
}

func (r *Result) writeTable(w io.Writer) error {
	fmt.Fprintf(w, "%s, mode %s\n", r.Workload, r.Mode)
	if r.BindCeiling > 0 {
		fmt.Fprintf(w, "ceiling (a client that binds without deciding): %.0f bindings/s; %.0f pods/s created and bound\n", r.BindCeiling, r.CreateBindCeiling)
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "scheduler\tpods\tscheduled\tpods/s\tof ceiling\tCPU ms/pod\tto rest\tp50 ms\tp99 ms\tpeak MiB\t")
	for _, x := range r.Runs {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.0f\t%s\t%.4f\t%s\t%.4f\t%.4f\t%.0f\t\n",
			x.Scheduler, x.Pods, x.Scheduled, x.PodsPerSecond, r.ofCeiling(x.PodsPerSecond),
			x.CPUMillisPerPod, known("%.4f", x.CPUMillisToRest), x.P50Millis, x.P99Millis, x.PeakRSSMiB)
	}
	fmt.Fprintf(t, "ratio (medians)\t\t\t%.2f\t\t%.4f\t%s\t\t%.4f\t%.2f\t\n",
		r.Ratio.PodsPerSecond, r.Ratio.CPUMillisPerPod, known("%.4f", r.Ratio.CPUMillisToRest), r.Ratio.P99Millis, r.Ratio.PeakRSSMiB)
	return t.Flush()
}

// known is the figure, or a dash where it was not measured.
func known(format string, x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf(format, x)
}

// ofCeiling is the share of what a client binds that decides nothing, creating
// the pods as well.
func (r *Result) ofCeiling(podsPerSecond float64) string {
	if r.CreateBindCeiling == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*podsPerSecond/r.CreateBindCeiling)
}

// writeMarkdown writes one table of all results, medians of the turns, Berth's
// figure before kube-scheduler's, with the threshold of Kubernetes' own runs. What has no
// figures is told below.
func writeMarkdown(w io.Writer, results []*Result, without []error) {
	fmt.Fprintln(w, "| workload | nodes, pods | threshold, pods/s | ceiling, pods/s | pods/s | ratio | of ceiling | CPU ms/pod | ratio | to rest | ratio | p99 ms | peak MiB | ratio |")
	fmt.Fprintln(w, "|"+strings.Repeat("---|", 14))
	for _, r := range results {
		pair := func(format string, of func(Run) float64) string {
			return known(format, r.median(Berth, of)) + " / " + known(format, r.median(KubeScheduler, of))
		}
		rate := func(x Run) float64 { return x.PodsPerSecond }
		var size Run
		if len(r.Runs) > 0 {
			size = r.Runs[0]
		}
		cells := []string{
			r.Workload, fmt.Sprintf("%d, %d", size.Nodes, size.Pods), known("%.0f", r.Threshold), known("%.0f", r.CreateBindCeiling),
			pair("%.0f", rate), known("%.2f", r.Ratio.PodsPerSecond),
			r.ofCeiling(r.median(Berth, rate)) + " / " + r.ofCeiling(r.median(KubeScheduler, rate)),
			pair("%.3g", func(x Run) float64 { return x.CPUMillisPerPod }), known("%.3g", r.Ratio.CPUMillisPerPod),
			pair("%.3g", func(x Run) float64 { return x.CPUMillisToRest }), known("%.3g", r.Ratio.CPUMillisToRest),
			pair("%.3g", func(x Run) float64 { return x.P99Millis }),
			pair("%.0f", func(x Run) float64 { return x.PeakRSSMiB }), known("%.2f", r.Ratio.PeakRSSMiB),
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
	}
	for i, err := range without {
		if i == 0 {
			fmt.Fprintln(w, "\nWithout figures:")
		}
		fmt.Fprintf(w, "\n- %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if len(without) > 0 {
		fmt.Fprintln(w)
	}
}

// column is a column of a table of figures.
type column[R any] struct {
	name string
	of   func(*R) string
}

// writeRows writes a row of figures for each of the list: as csv, markdown or a table.
func writeRows[R any](w io.Writer, format string, columns []column[R], list []R) error {
	rows := make([][]string, 1+len(list))
	for _, c := range columns {
		rows[0] = append(rows[0], c.name)
		for i := range list {
			rows[1+i] = append(rows[1+i], c.of(&list[i]))
		}
	}
	switch format {
	case "csv":
		return csv.NewWriter(w).WriteAll(rows)
	case "markdown":
		for i, row := range rows {
			fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
			if i == 0 {
				fmt.Fprintln(w, "|"+strings.Repeat("---|", len(row)))
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	return t.Flush()
}

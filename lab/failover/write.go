package failover

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// write prints a row for each turn.
func write(w io.Writer, results []Result) error {
	if len(results) > 0 {
		fmt.Fprintf(w, "%d nodes, %d pods\n", results[0].Nodes, results[0].Pods)
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "scheduler\tstart s\tCPU s\tpeak MiB\tSIGTERM s\tkill s\tafter the lease s\t")
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.0f\t%.2f\t%.2f\t%.2f\t\n",
			r.Scheduler, r.Start, r.StartCPU, r.PeakMiB, r.Terminate, r.Kill, r.AfterKill)
	}
	return t.Flush()
}

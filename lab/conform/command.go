package conform

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/sim/generate"
)

// maxShown is how many disagreements of a mix are shrunk and printed.
const maxShown = 3

// NewCommand is "berth-lab conform".
func NewCommand() *cobra.Command {
	seeds, mix := "1-600", "all mixes"
	cmd := &cobra.Command{
		Use:   "conform",
		Short: "Compare Berth's decisions with kube-scheduler v1.36.3, decision by decision",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			first, last, err := span(seeds)
			if err != nil {
				return err
			}
			mixes := generate.Mixes()
			if cmd.Flags().Changed("mix") {
				mixes = strings.Split(mix, ",")
			}
			for _, m := range mixes {
				if !slices.Contains(generate.Mixes(), m) {
					return fmt.Errorf("--mix: no mix %q (there are %s)", m, strings.Join(generate.Mixes(), ", "))
				}
			}
			silence()
			return conform(cmd.OutOrStdout(), mixes, first, last, Berth(plugins.Registry(plugins.Features{})))
		},
	}
	cmd.Flags().StringVar(&seeds, "seeds", seeds, "seeds of the worlds, A-B or one number")
	cmd.Flags().StringVar(&mix, "mix", mix, "mixes of the worlds, separated by commas: "+strings.Join(generate.Mixes(), ", "))
	return cmd
}

// silence keeps the logs of the linked kube-scheduler out of the report.
func silence() { klog.SetSlogLogger(slog.New(slog.DiscardHandler)) }

// span reads "A-B" or "A".
func span(s string) (first, last uint64, err error) {
	a, b, ranged := strings.Cut(s, "-")
	if !ranged {
		b = a
	}
	first, err = strconv.ParseUint(a, 10, 64)
	if err == nil {
		last, err = strconv.ParseUint(b, 10, 64)
	}
	if err != nil || last < first {
		return 0, 0, fmt.Errorf("--seeds %q: want A-B with A no larger than B", s)
	}
	return first, last, nil
}

// conform plays every mix with every seed and fails if the sides ever part.
func conform(out io.Writer, mixes []string, first, last uint64, berth Start) error {
	failed := false
	for _, mix := range mixes {
		start := time.Now()
		counts, apart, err := playAll(mix, first, last, berth)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, summary(mix, counts, len(apart), time.Since(start)))
		for _, d := range apart[:min(maxShown, len(apart))] {
			failed = true
			if err := Print(out, Shrink(d, berth)); err != nil {
				return err
			}
		}
	}
	if failed {
		return errors.New("Berth and kube-scheduler disagree")
	}
	return nil
}

func summary(mix string, c Counts, apart int, took time.Duration) string {
	return fmt.Sprintf("%s: %d worlds, %d decisions (%d scheduled, %d unschedulable, %d preempting, %d gated, %d errors), "+
		"%d wake-ups compared (%d extra, %d that kube-scheduler misses), %d worlds disagree; %.0f decisions/s",
		mix, c.Worlds, c.Decisions, c.Scheduled, c.Unschedulable, c.Preempted, c.Gated, c.Failed,
		c.Wakes, c.Extra, c.Missed, apart, float64(c.Decisions)/took.Seconds())
}

// playAll plays the worlds of a mix on all processors. Disagreements come in
// the order of their seeds.
func playAll(mix string, first, last uint64, berth Start) (Counts, []*Disagreement, error) {
	type played struct {
		counts Counts
		apart  *Disagreement
		err    error
	}
	results := make([]played, last-first+1)
	var workers sync.WaitGroup
	n := runtime.GOMAXPROCS(0)
	for worker := range n {
		workers.Go(func() {
			for i := worker; i < len(results); i += n {
				w, err := generate.Cluster(mix, first+uint64(i))
				if err != nil {
					results[i].err = err
					continue
				}
				results[i].counts, results[i].apart = Compare(w, berth)
			}
		})
	}
	workers.Wait()
	var total Counts
	var apart []*Disagreement
	for _, r := range results {
		if r.err != nil {
			return total, nil, r.err
		}
		total.add(r.counts)
		if r.apart != nil {
			apart = append(apart, r.apart)
		}
	}
	return total, apart, nil
}

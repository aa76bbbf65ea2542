package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// topCall is what the flags of `berth top` say.
type topCall struct {
	daemonFlags
	once     bool
	interval time.Duration
	output   string
}

const topLong = `Show the scheduler's queue: how many pods wait where, how many attempts, bindings and
evictions there were in the last minute, which events requeue pods, and what blocks most.

On a terminal the view refreshes until it is interrupted. Otherwise, and with
--once, it is printed once.

Exit status: 0, or 2 if the scheduler cannot be asked.`

const topExamples = `  # Watch the queue
  %[1]s top

  # For a script: how many pods fit nowhere?
  %[1]s top --once -o json | jq .queue.unschedulable

  # A scheduler outside the cluster
  %[1]s top --daemon https://10.0.0.5:10259 --daemon-ca ca.crt`

func newTop(name string) *cobra.Command {
	t := topCall{daemonFlags: daemonFlags{url: auto}}
	cmd := &cobra.Command{
		Use:     "top",
		Short:   "Show the scheduler's queue, its rates, and what blocks most",
		Long:    topLong,
		Example: fmt.Sprintf(topExamples, name),
		Args:    nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmp.Or(t.checkFlags(cmd.Flags()), t.useless(cmd.Flags())); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal ends the process at once
			return t.run(ctx, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	t.addFlags(f)
	t.addKubeconfig(f)
	f.BoolVar(&t.once, "once", false, "print once and end")
	f.DurationVar(&t.interval, "interval", 2*time.Second, "how often the view refreshes, 500ms at least")
	addOutput(cmd, &t.output, " (once)", "text", "json")
	return cmd
}

// useless tells of a flag that the others leave nothing to say.
func (t *topCall) useless(f *pflag.FlagSet) error {
	switch {
	case t.once:
		return given(f, "has no effect with --once", "interval")
	case t.output == "json":
		return given(f, "has no effect with -o json, which is printed once", "interval")
	}
	return nil
}

func (t *topCall) run(ctx context.Context, stdout io.Writer) error {
	switch {
	case t.output != "text" && t.output != "json":
		return fmt.Errorf("-o %s: must be text or json", t.output)
	case t.interval < 500*time.Millisecond:
		return fmt.Errorf("--interval %s: must be 500ms at least", t.interval)
	}
	d, err := t.dial(ctx)
	if err != nil {
		return err
	}
	defer d.close()
	screen, is := stdout.(*terminal.Writer)
	if t.once || t.output == "json" || !is || !screen.IsTerminal() {
		return t.print(ctx, d, stdout, func() error { return nil })
	}
	again := time.NewTicker(t.interval)
	defer again.Stop()
	for {
		if err := t.print(ctx, d, stdout, func() error { return screen.Control("\x1b[H\x1b[2J") }); err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// print asks, clears the screen and prints.
func (t *topCall) print(ctx context.Context, d *daemon, out io.Writer, clear func() error) error {
	var s api.Summary
	if err := d.get(ctx, "summary", nil, "Summary", &s); err != nil {
		return err
	}
	if t.output == "json" {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(s)
	}
	if err := clear(); err != nil {
		return err
	}
	_, err := io.WriteString(out, summaryText(&s))
	return err
}

// Bounds of what the view shows.
const (
	shownBlocking = 15
	shownRequeued = 4
)

func summaryText(s *api.Summary) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	q := &s.Queue
	if s.Shadow {
		terminal.Fprintf(w, "SHADOW\t%s\t(%s; it compares, and schedules nothing)\n", cmp.Or(s.Leader, "-"), s.Time.Format(time.RFC3339))
	} else {
		terminal.Fprintf(w, "LEADER\t%s\t(%s)\n", cmp.Or(s.Leader, "-"), s.Time.Format(time.RFC3339))
	}
	terminal.Fprintf(w, "CLUSTER\t%s, %s on them, %d of these assumed\n", plural(s.Nodes, "node"), plural(s.Pods, "pod"), s.Assumed)
	terminal.Fprintf(w, "QUEUE\tactive %d, backoff %d, unschedulable %d, gated %d, in flight %d%s\n", q.Active, q.Backoff+q.ErrorBackoff, q.Unschedulable, q.Gated, q.InFlight, oldest(s))
	attempts := 0
	for _, n := range s.Rates.Attempts { // any order: a sum
		attempts += n
	}
	terminal.Fprintf(w, "LAST %.0fs\t%s%s, %d bound, %d evicted\n", s.Rates.Seconds, plural(attempts, "attempt"), counts(s.Rates.Attempts, len(s.Rates.Attempts)), s.Rates.Bound, s.Rates.Evicted)
	if len(s.Rates.Requeued) > 0 {
		terminal.Fprintf(w, "REQUEUED BY\t%s\n", strings.Trim(counts(s.Rates.Requeued, shownRequeued), " ()"))
	}
	terminal.Fprintf(w, "RECORDS\t%.1f of %d MiB%s\n", float64(s.Log.Bytes)/(1<<20), s.Log.Limit>>20, since(s))
	_ = w.Flush() // to memory
	switch {
	case s.Shadow && len(s.Blocking) == 0:
		b.WriteString("\nA shadow tries no pod; `berth why --all` says what blocks those that wait.\n")
		return b.String()
	case len(s.Blocking) == 0:
		b.WriteString("\nNothing blocks any pod.\n")
		return b.String()
	}
	more := "`berth why --all` says what would help"
	if s.Hosted {
		more = "`berth events NAMESPACE/POD` tells what plugins answered"
	}
	terminal.Fprintf(&b, "\nWHAT BLOCKS MOST (pods, by their last attempts; %s)\n", more)
	for _, x := range s.Blocking[:min(shownBlocking, len(s.Blocking))] {
		terminal.Fprintf(w, "  %d\t%s\t%s\n", x.Pods, x.Plugin, x.Reason)
	}
	_ = w.Flush()
	if rest := len(s.Blocking) - shownBlocking; rest > 0 {
		terminal.Fprintf(&b, "  (and %d more reasons)\n", rest)
	}
	return b.String()
}

func oldest(s *api.Summary) string {
	if s.Oldest == nil {
		return ""
	}
	return fmt.Sprintf("; the oldest pod is %s old", s.Time.Sub(*s.Oldest).Round(time.Second))
}

func since(s *api.Summary) string {
	if s.Log.Oldest == nil {
		return ""
	}
	return ", since " + s.Log.Oldest.Format(time.RFC3339)
}

// counts are the largest of them, in words.
func counts(of map[string]int, most int) string {
	if len(of) == 0 {
		return ""
	}
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) })
	var parts []string
	for _, name := range names[:min(most, len(names))] {
		parts = append(parts, fmt.Sprintf("%s %d", name, of[name]))
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

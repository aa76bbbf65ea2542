package tool

import (
	"cmp"
	"context"
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
	"github.com/berth-scheduler/berth/edge/records"
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
evictions there were in the last minute, how long bindings took (median and 99th
percentile), who evicts whom, which events requeue pods, what blocks most, and whether a
configuration was refused.

Each pod that waits counts for one cause: the reason that rejects most of the nodes on
which others could make room for it, or else of those that it is meant for by taints and
labels, by its last attempt.

On a terminal the view refreshes until it is interrupted. With --daemon auto it follows
the leader: where that stops answering, or another leads, it goes on with who leads then.
Otherwise, and with --once, it is printed once.

Exit status: 0, or 2 if the scheduler cannot be asked.`

const topExamples = `  # Watch the queue
  %[1]s top

  # For a script: how many pods fit nowhere?
  %[1]s top --once -o json | jq .queue.unschedulable

  # A scheduler outside the cluster
  %[1]s top --daemon https://10.0.0.5:10259 --daemon-ca ca.crt`

func newTop(name string) *cobra.Command {
	t := topCall{daemonFlags: daemonFlags{url: auto, always: true}}
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
			said, _ := t.explained(cmd.Context(), t.run(ctx, cmd.OutOrStdout()))
			return said
		},
	}
	f := cmd.Flags()
	t.addFlags(f)
	t.addKubeconfig(f)
	f.BoolVar(&t.once, "once", false, "print once and end")
	f.DurationVar(&t.interval, "interval", 2*time.Second, "how often the view refreshes, 500ms at least")
	addOutput(cmd, &t.output, " (once)", "text", "json")
	t.api.completeFlags(cmd)
	return cmd
}

// useless returns an error about a flag that has no effect beside the others.
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
	if t.interval < 500*time.Millisecond {
		return fmt.Errorf("--interval %s: must be 500ms at least", t.interval)
	}
	lead := &leader{dial: t.dial}
	defer lead.leave()
	screen, is := stdout.(*terminal.Writer)
	if t.once || t.output == "json" || !is || !screen.IsTerminal() {
		return t.print(ctx, lead, stdout, func() error { return nil })
	}
	again := time.NewTicker(t.interval)
	defer again.Stop()
	return t.refresh(ctx, lead, screen, again.C, func() error { return screen.Control("\x1b[H\x1b[2J") })
}

// refresh prints again and again until the context ends. Once a leader has answered, the
// view says what went wrong, and looks for who leads now.
func (t *topCall) refresh(ctx context.Context, lead *leader, out io.Writer, again <-chan time.Time, clear func() error) error {
	for {
		err := t.print(ctx, lead, out, clear)
		switch {
		case ctx.Err() != nil:
			return nil // an interrupt is how it is meant to end
		case err != nil && lead.name == "":
			return err
		case err != nil:
			if err := clear(); err != nil {
				return err
			}
			terminal.Fprintf(out, "%s does not answer; looking for who leads.\n%s\n", lead.name, sentence(err))
		}
		select {
		case <-again:
		case <-ctx.Done():
			return nil
		}
	}
}

// leader asks the scheduler that leads, whichever that is.
type leader struct {
	dial   func(context.Context) (*daemon, error)
	way    *daemon   // nil: it is to be looked for
	name   string    // of who led last; "": nobody has answered yet
	before string    // who led before that
	since  time.Time // when it was seen that another leads
}

// summary asks the leader for its summary.
func (l *leader) summary(ctx context.Context) (*api.Summary, error) {
	if l.way == nil {
		way, err := l.dial(ctx)
		if err != nil {
			return nil, err
		}
		l.way = way
	}
	s := &api.Summary{}
	if err := l.way.get(ctx, "summary", nil, "Summary", s); err != nil {
		l.leave()
		return nil, err
	}
	if l.name != "" && s.Leader != l.name {
		l.before, l.since = l.name, s.Time
	}
	l.name = cmp.Or(s.Leader, "the scheduler")
	return s, nil
}

// leave ends the way to who led.
func (l *leader) leave() {
	if l.way != nil {
		l.way.close()
		l.way = nil
	}
}

// print asks the leader for a summary and writes it to out. It calls clear before it writes text;
// it does not for JSON, or if asking fails.
func (t *topCall) print(ctx context.Context, lead *leader, out io.Writer, clear func() error) error {
	s, err := lead.summary(ctx)
	if err != nil {
		return err
	}
	if t.output == "json" {
		return writeData(out, "json", s)
	}
	if err := clear(); err != nil {
		return err
	}
	text := summaryText(s)
	if lead.before != "" {
		terminal.Fprintf(out, "%s led until %s.\n", lead.before, lead.since.Format(time.TimeOnly))
	}
	_, err = io.WriteString(out, text)
	return err
}

// Bounds of what the view shows.
const (
	shownBlocking    = 15
	shownRequeued    = 4
	shownPreemptions = 5
	shownWorkloads   = 3
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
	terminal.Fprintf(w, "CLUSTER\t%s, %s on them, %d of these assumed\n", terminal.Count(s.Nodes, "node"), terminal.Count(s.Pods, "pod"), s.Assumed)
	terminal.Fprintf(w, "QUEUE\tactive %d, backoff %d, unschedulable %d, gated %d, in flight %d%s\n", q.Active, q.Backoff+q.ErrorBackoff, q.Unschedulable, q.Gated, q.InFlight, oldest(s))
	if s.Others != nil {
		terminal.Fprintf(w, "OTHERS\t%s\n", othersText(s.Others))
	}
	attempts := 0
	for _, n := range s.Rates.Attempts { // any order: a sum
		attempts += n
	}
	terminal.Fprintf(w, "LAST %.0fs\t%s%s, %d bound, %d evicted\n", s.Rates.Seconds, terminal.Count(attempts, "attempt"), counts(s.Rates.Attempts, len(s.Rates.Attempts)), s.Rates.Bound, s.Rates.Evicted)
	terminal.Fprintf(w, "BINDING\t%s\n", bindingText(&s.Rates.Binding))
	evicted := evictionTexts(s.Rates.Preemptions)
	for i, text := range evicted[:min(shownPreemptions, len(evicted))] {
		terminal.Fprintf(w, "%s\t%s\n", title(i, "EVICTED"), text)
	}
	if r := s.Refused; r != nil {
		terminal.Fprintf(w, "CONFIG\t%s\n", refusalText(r))
	}
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
		terminal.Fprintf(&b, "\nNothing blocks any pod that asks for this scheduler%s.\n", slowText(&s.Rates.Binding))
		return b.String()
	}
	more := "`berth why --all` says what would help"
	if s.Hosted {
		more = "`berth events NAMESPACE/POD` tells what plugins answered"
	}
	terminal.Fprintf(&b, "\nWHAT BLOCKS MOST (pods, by their last attempts; %s)\n", more)
	for _, x := range s.Blocking[:min(shownBlocking, len(s.Blocking))] {
		terminal.Fprintf(w, "  %d\t%s\t%s\t%s\n", x.Pods, x.Plugin, x.Reason, workloadsText(x.Workloads))
	}
	_ = w.Flush()
	if rest := len(s.Blocking) - shownBlocking; rest > 0 {
		terminal.Fprintf(&b, "  (and %s)\n", terminal.Count(rest, "more cause"))
	}
	return b.String()
}

// othersText says how many pods ask for other schedulers, and for which.
func othersText(o *records.Others) string {
	var names []string
	for _, of := range o.Schedulers {
		names = append(names, fmt.Sprintf("%s %d", of.Name, of.Pods))
	}
	if o.Names > len(o.Schedulers) {
		names = append(names, "...")
	}
	atLeast, ask := "", "ask"
	if o.More {
		atLeast = "at least "
	}
	if o.Pods == 1 {
		ask = "asks"
	}
	return fmt.Sprintf("%s%s %s for schedulers that are not this one: %s (this one is %s)", atLeast, terminal.Count(o.Pods, "pod"), ask, strings.Join(names, ", "), strings.Join(o.Profiles, ", "))
}

// bindingText says how long bindings took.
func bindingText(t *records.Times) string {
	if t.Pods == 0 {
		return "no times are known"
	}
	return fmt.Sprintf("p50 %s, p99 %s, from the decision to the API server's confirmation", secondsText(t.P50), secondsText(t.P99))
}

// slowText says that bindings take long, "" if they do not.
func slowText(t *records.Times) string {
	if t.P99 <= slowBinding.Seconds() {
		return ""
	}
	return fmt.Sprintf(", but bindings take long (p99 %s): `berth status` says why", secondsText(t.P99))
}

// secondsText is a time with three digits.
func secondsText(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 100*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// preemptionText says who evicts whom.
func preemptionText(p *records.Preemption) string {
	more := ""
	if rest := p.Evicted - len(p.Victims); rest > 0 {
		more = fmt.Sprintf(" and %d more", rest)
	}
	return fmt.Sprintf("%s for %s: %s%s on %s", terminal.Count(p.Evicted, "pod"), p.For, strings.Join(p.Victims, ", "), more, p.Node)
}

// refusalText says that a configuration was refused.
func refusalText(r *api.Refusal) string {
	return fmt.Sprintf("refused at %s, the previous one stays in effect: %s", r.Time.Format(time.RFC3339),
		cmp.Or(r.Reason, "the right to get "+api.ReasonPath+" is needed to see why"))
}

// workloadsText names the workloads with most pods.
func workloadsText(of []records.Workload) string {
	var parts []string
	for _, w := range of[:min(shownWorkloads, len(of))] {
		parts = append(parts, fmt.Sprintf("%s %d", w.Name, w.Pods))
	}
	if len(of) > shownWorkloads {
		parts = append(parts, "...")
	}
	return strings.Join(parts, ", ")
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

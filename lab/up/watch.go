package up

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/lab/sample"
)

// watch shows the progress of the sample until it is settled or stands still
// for too long, and returns the last state and whether it was settled.
func (r *run) watch(ctx context.Context, s sample.Sample) (last sample.Progress, settled bool, err error) {
	limit := settleAfter
	if r.options.Once {
		limit = r.options.Timeout
	}
	began := time.Now()
	progressed := began
	line := newProgressLine(r.out)
	err = s.Watch(ctx, r.cluster.Client(), 200*time.Millisecond, func(p sample.Progress) bool {
		now := time.Now()
		if !r.options.Once && (p.Bound != last.Bound || p.Created != last.Created) {
			progressed = now
		}
		last, settled = p, s.Settled(p)
		done := settled || p.Misfits > 0 || now.Sub(progressed) > limit
		line.show(now, progressText(p, now.Sub(began)), done)
		return !done
	})
	return last, settled, err
}

// progressText is one line: pods bound, pending and to be, and the mean rate.
func progressText(p sample.Progress, elapsed time.Duration) string {
	rate := float64(p.Bound) / max(elapsed.Seconds(), 0.001)
	return fmt.Sprintf("%5.1f s  bound %5d  pending %5d  of %5d  %6.0f pods/s",
		elapsed.Seconds(), p.Bound, p.Created-p.Bound, p.Total, rate)
}

// progressLine is one line that is written over again on a terminal, and a new
// line each second elsewhere.
type progressLine struct {
	out      *terminal.Writer
	terminal bool
	last     time.Time
}

func newProgressLine(out io.Writer) *progressLine {
	w, ok := out.(*terminal.Writer)
	if !ok {
		w = terminal.NewWriter(out)
	}
	return &progressLine{out: w, terminal: w.IsTerminal()}
}

func (l *progressLine) show(now time.Time, text string, final bool) {
	if l.terminal {
		_ = l.out.Control("\r" + text + "\x1b[K") // only a view
		if final {
			terminal.Fprintf(l.out, "\n")
		}
		return
	}
	if final || now.Sub(l.last) >= time.Second {
		l.last = now
		terminal.Fprintf(l.out, "%s\n", text)
	}
}

// reportPending says which pods have no node, and why.
func (r *run) reportPending(p sample.Progress) {
	pods := 0
	for _, reason := range p.Pending {
		pods += reason.Pods
	}
	if pods == 0 {
		return
	}
	r.say("\n%d pods are pending:\n", pods)
	for _, reason := range p.Pending {
		message := reason.Message
		if message == "" {
			message = "not tried yet"
		}
		r.say("%5d  %-7s %s\n", reason.Pods, reason.Workload, message)
	}
	r.say("\n")
}

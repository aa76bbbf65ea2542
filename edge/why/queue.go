package why

import (
	"strings"
	"time"

	"github.com/berth-scheduler/berth/edge/records"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// Queue is where in the daemon's queue the pod is, and what happened to it.
type Queue struct {
	Place string    `json:"place"`
	Since time.Time `json:"since"`
	// Until is when it is tried again, or looked at again at the latest.
	Until    *time.Time `json:"until,omitempty"`
	Attempts int        `json:"attempts"`
	// Position is how many pods leave the place before it, and one.
	Position int `json:"position,omitempty"`
	// Alike is how many other pods of the same workload are in the queue.
	Alike   int              `json:"alike,omitempty"`
	History []records.Record `json:"history"`
}

// Shadow is what a daemon that schedules nothing knows of a pod that waits for another
// scheduler.
type Shadow struct {
	// Since is since when the shadow has seen it wait.
	Since time.Time `json:"since"`
}

// shadowText says what the shadow has seen.
func (a *Answer) shadowText(b *strings.Builder) {
	if a.Shadow != nil {
		terminal.Fprintf(b, "\nSEEN BY A SHADOW\n  waits for the scheduler in charge since %s, as far as was seen; this daemon schedules nothing: it says what Berth would do\n", a.Shadow.Since.Format(time.TimeOnly))
	}
}

// shortHistory is how much of the history the short form shows.
const shortHistory = 5

// queueText says where in the queue the pod is.
func (a *Answer) queueText(b *strings.Builder, wide bool) {
	q := a.Queue
	if q == nil || q.Place == "" && len(q.History) == 0 { // it is another scheduler's
		return
	}
	b.WriteString("\nIN THE QUEUE\n")
	if q.Place != "" {
		terminal.Fprintf(b, "  %s since %s", q.Place, q.Since.Format(time.TimeOnly))
		if q.Until != nil {
			terminal.Fprintf(b, ", until %s at the latest", q.Until.Format(time.TimeOnly))
		}
		terminal.Fprintf(b, "; %s", terminal.Count(q.Attempts, "attempt"))
		if q.Position > 0 {
			terminal.Fprintf(b, "; position %d", q.Position)
		}
		b.WriteString("\n")
	}
	shown := q.History
	if !wide && len(shown) > shortHistory {
		shown = shown[len(shown)-shortHistory:]
	}
	for i := range shown {
		terminal.Fprintf(b, "  %s %s\n", shown[i].Time.Format(time.TimeOnly), shown[i].Text())
	}
}

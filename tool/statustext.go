package tool

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// text is the overview for people.
func (o *Overview) text() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if l := o.Lease; l != nil {
		terminal.Fprintf(w, "LEADER\t%s\n", l.leader())
		terminal.Fprintf(w, "LEASE\t%s, renewed %s ago, valid for %ds, %s so far\n", l.Name, secondsText(l.RenewedSeconds), l.ValidSeconds, terminal.Count(int(l.Holders), "change")+" of the holder")
	}
	for i := range o.Replicas {
		terminal.Fprintf(w, "%s\t%s\n", title(i, "REPLICAS"), o.Replicas[i].text())
	}
	if o.Scheduler != nil {
		schedulerText(w, o.Scheduler)
	}
	for i := range o.Unserved {
		u := &o.Unserved[i]
		terminal.Fprintf(w, "%s\t%s the scheduler %s, which Berth does not serve\n", title(i, "UNSERVED"), wantText(u.Pods), u.Scheduler)
	}
	for i, what := range o.NotSeen {
		terminal.Fprintf(w, "%s\t%s\n", title(i, "NOT SEEN"), what)
	}
	for i, what := range o.Attention {
		terminal.Fprintf(w, "%s\t%s\n", title(i, "ATTENTION"), what)
	}
	_ = w.Flush() // to memory
	if s := o.Scheduler; s != nil && s.Shadow != nil {
		b.WriteString(shadowText(s.Shadow))
	}
	return b.String()
}

// title returns the title of a list for its first line.
func title(i int, of string) string {
	if i > 0 {
		return ""
	}
	return of
}

func (r *Replica) text() string {
	state := "not ready, " + r.Phase
	if r.Ready {
		state = "ready"
	}
	switch {
	case r.Shadow:
		state += ", a shadow"
	case r.Leads:
		state += ", leads"
	}
	if r.Restarts > 0 {
		state += ", " + terminal.Count(int(r.Restarts), "restart")
		if r.Ended != "" {
			state += fmt.Sprintf(", the last after %s at %s", r.Ended, r.EndedAt.UTC().Format(time.RFC3339))
		}
	}
	return fmt.Sprintf("%s on %s: %s", r.Pod, cmp.Or(r.Node, "no node"), state)
}

// schedulerText is what the scheduler says of itself.
func schedulerText(w io.Writer, s *api.Status) {
	role := "leads"
	switch {
	case s.Shadow != nil:
		role = "is a shadow: it compares, and schedules nothing"
	case !s.Leads:
		role = "does not lead"
	}
	terminal.Fprintf(w, "ASKED\t%s, which %s; it runs for %s\n", s.Identity, role, ageText(s.Time.Sub(s.Started).Seconds()))
	c := &s.Configuration
	terminal.Fprintf(w, "CONFIG\tin force since %s: profiles %s; %s; %g requests a second%s\n", c.Since.Format(time.RFC3339), strings.Join(c.Profiles, ", "),
		terminal.Count(c.Extenders, "extender"), c.QPS, reloadText(c))
	if len(s.Hosted) > 0 {
		terminal.Fprintf(w, "PLUGINS\thosted: %s\n", strings.Join(s.Hosted, ", "))
	}
	if s.Stuck == "" {
		terminal.Fprintf(w, "CLUSTER\t%s, %s on them, %d of these assumed\n", terminal.Count(s.Nodes, "node"), terminal.Count(s.Pods, "pod"), s.Assumed)
		q := &s.Queue
		terminal.Fprintf(w, "QUEUE\tactive %d, backoff %d, unschedulable %d, gated %d, in flight %d\n", q.Active, q.Backoff+q.ErrorBackoff, q.Unschedulable, q.Gated, q.InFlight)
	}
	if s.Shadow == nil { // which binds none
		terminal.Fprintf(w, "BINDING\t%s; %s bound in the last %.0fs\n", bindingText(&s.Rates.Binding), terminal.Count(s.Rates.Bound, "pod"), s.Rates.Seconds)
	}
	terminal.Fprintf(w, "WATCHES\t%s\n", watchesText(s))
	if v := s.APIServer; v != nil {
		terminal.Fprintf(w, "SERVER\tAPI server %s\n", v.Version)
	}
}

func reloadText(c *api.Configuration) string {
	if c.Reloadable {
		return ""
	}
	return "; another takes a restart"
}

// watchesText says how many watches are synced, and which brought nothing for longest.
func watchesText(s *api.Status) string {
	synced, silent := 0, -1
	for i := range s.Watches {
		w := &s.Watches[i]
		if w.Synced {
			synced++
		}
		if w.Heard != nil && (silent < 0 || w.Heard.Before(*s.Watches[silent].Heard)) {
			silent = i
		}
	}
	text := fmt.Sprintf("%d of %d synced", synced, len(s.Watches))
	if silent >= 0 {
		text += fmt.Sprintf("; silent for longest: %s, %s", s.Watches[silent].Resource, ageText(s.Time.Sub(*s.Watches[silent].Heard).Seconds()))
	}
	return text
}

// shadowText is the table of what a shadow found.
func shadowText(s *api.ShadowStatus) string {
	total := 0
	for _, c := range s.Choices {
		total += c.Pods
	}
	var b strings.Builder
	terminal.Fprintf(&b, "\n%s OF THE LIVE SCHEDULER (docs/adopt.md says what each result means)\n", strings.ToUpper(terminal.Count(total, "choice")))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, c := range s.Choices {
		terminal.Fprintf(w, "  %d\t%.1f%%\t%s\t%s\t%s\n", c.Pods, 100*float64(c.Pods)/float64(total), c.Result, cmp.Or(c.Plugin, "-"), c.Profile)
	}
	_ = w.Flush() // to memory
	terminal.Fprintf(&b, "%s for more than 10 s though Berth would place them.\n", waitText(s.Placeable))
	return b.String()
}

func waitText(n int) string {
	if n == 1 {
		return "1 pod waits"
	}
	return fmt.Sprintf("%d pods wait", n)
}

// ageText is a time in its largest units.
func ageText(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d >= 48*time.Hour {
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
	return d.Round(time.Second).String()
}

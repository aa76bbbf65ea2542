package replay

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// shown is how many pods of a list are named, where not all are.
const shown = 10

// Write writes what came of an exact replay.
func (x *Exactly) Write(w io.Writer) {
	terminal.Fprintf(w, "%d steps from %s to %s, in %s\n", x.Steps, clock(x.From), clock(x.To), terminal.Count(x.Runs, "run"))
	terminal.Fprintf(w, "%s: %s\n", terminal.Count(x.Decisions, "decision"), byResult(x.ByResult))
	switch {
	case x.Different > 0:
		terminal.Fprintf(w, "%d of %d decisions are the same (%s); %s different\n", x.Same, x.Decisions-x.Unverified, share(x.Same, x.Decisions-x.Unverified), steps(x.Different))
		f := x.First
		terminal.Fprintf(w, "\nThe first difference is at step %d (%s), %s\n", f.Step, clock(f.Time), f.kind)
		if f.Pod != "" {
			terminal.Fprintf(w, "  pod:      %s\n", f.Pod)
		}
		terminal.Fprintf(w, "  recorded: %s\n  replayed: %s\n", f.Recorded, f.Replayed)
	case x.Decisions > x.Unverified:
		terminal.Fprintf(w, "All %d decisions, and all other effects, are the same as recorded.\n", x.Same)
	}
	if x.Unverified > 0 {
		terminal.Fprintf(w, "%s cannot be compared: the record begins in the middle there, and does not hold how long each pod had waited.\n", terminal.Count(x.Unverified, "decision"))
	}
}

func steps(n int) string {
	if n == 1 {
		return "1 step is"
	}
	return fmt.Sprintf("%d steps are", n)
}

func byResult(m map[decision.Result]int) string {
	var parts []string
	for _, r := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%d %s", m[r], r))
	}
	return strings.Join(parts, ", ")
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func share(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f%%", 100*float64(n)/float64(of))
}

func percent(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

func seconds(x float64) string {
	return time.Duration(x * float64(time.Second)).Round(time.Millisecond).String()
}

// rows are the lines of the table, each with a number of both sides.
func (s *Side) cells() [][2]string {
	return [][2]string{
		{"pods that arrived", fmt.Sprint(s.Arrived)}, {"placed", fmt.Sprint(s.Placed)}, {"pending at the end", fmt.Sprint(s.Pending)},
		{"deleted before they had a node", fmt.Sprint(s.Left)}, {"decisions", fmt.Sprint(s.Decisions)}, {"preempted pods", fmt.Sprint(s.Preemptions)},
		{"wait, median", seconds(s.WaitP50)}, {"wait, 90%", seconds(s.WaitP90)}, {"wait, 99%", seconds(s.WaitP99)}, {"wait, longest", seconds(s.WaitMax)},
		{"CPU requested, mean", percent(s.CPU)}, {"memory requested, mean", percent(s.Memory)}, {"free CPU stranded, mean", percent(s.Stranded)},
		{"empty nodes, mean", fmt.Sprintf("%.1f", s.Empty)}, {"empty nodes at the end", fmt.Sprint(s.EmptyAtEnd)},
	}
}

// Write writes the comparison as a table. all names every pod.
func (c *Comparison) Write(w io.Writer, all bool) error {
	noted(w, c.Notes)
	terminal.Fprintf(w, "%s to %s\n\n", clock(c.From), clock(c.To))
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	terminal.Fprintf(t, "\tA: %s\tB: %s\n", c.A.Name, c.B.Name)
	b := c.B.cells()
	for i, cell := range c.A.cells() {
		terminal.Fprintf(t, "%s\t%s\t%s\n", cell[0], cell[1], b[i][1])
	}
	if err := t.Flush(); err != nil {
		return err
	}
	terminal.Fprintf(w, "\n%s on the same node, %d elsewhere, %d placed under A alone, %d under B alone\n", terminal.Count(c.Same, "pod"), len(c.Elsewhere), len(c.OnlyA), len(c.OnlyB))
	if err := c.workloads(w, all); err != nil {
		return err
	}
	moves(w, "ELSEWHERE UNDER B", c.Elsewhere, all)
	moves(w, "PLACED UNDER A ALONE", c.OnlyA, all)
	moves(w, "PLACED UNDER B ALONE", c.OnlyB, all)
	names(w, "PREEMPTED UNDER A ALONE", c.EvictedA, all)
	names(w, "PREEMPTED UNDER B ALONE", c.EvictedB, all)
	names(w, "EMPTY AT THE END UNDER A ALONE", c.EmptyA, all)
	names(w, "EMPTY AT THE END UNDER B ALONE", c.EmptyB, all)
	return nil
}

func noted(w io.Writer, notes []string) {
	for _, note := range notes {
		terminal.Fprintf(w, "Note: %s.\n", note)
	}
}

// workloads counts the workloads by verdict, and lists those that B places worse or better;
// all lists the others, too.
func (c *Comparison) workloads(w io.Writer, all bool) error {
	if len(c.Workloads) == 0 {
		return nil
	}
	by := c.verdicts()
	terminal.Fprintf(w, "%s worse under B, %d better, %d alike\n", terminal.Count(by[worse], "workload"), by[better], by[alike])
	listed, rest := c.Workloads, 0
	if !all { // some that are worse, and some that are better
		last := by[worse] + by[better]
		listed = slices.Concat(listed[:min(by[worse], shown)], listed[by[worse]:min(by[worse]+shown, last)])
		rest = last - len(listed)
	}
	if len(listed) == 0 {
		return nil
	}
	terminal.Fprintf(w, "\n")
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	terminal.Fprintf(t, "WORKLOAD\tPODS\tELSEWHERE\tNO NODE\tPREEMPTED\tLONGEST WAIT\tON ONE NODE\tIN ONE ZONE\tUNDER B\n")
	for i := range listed {
		x := &listed[i]
		terminal.Fprintf(t, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", x.Workload, x.Pods, x.Elsewhere, both(x.A.NoNode, x.B.NoNode), both(x.A.Preempted, x.B.Preempted),
			both(seconds(x.A.WaitMax), seconds(x.B.WaitMax)), both(x.A.OnNode, x.B.OnNode), both(x.A.InZone, x.B.InZone), x.verdict())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	terminal.More(w, "", rest)
	return nil
}

func (c *Comparison) verdicts() map[string]int {
	by := map[string]int{}
	for i := range c.Workloads {
		by[c.Workloads[i].Verdict]++
	}
	return by
}

func (w *Workload) verdict() string {
	if w.Because == "" {
		return w.Verdict
	}
	return w.Verdict + ": " + w.Because
}

// both is what both sides have, once if it is the same.
func both[T comparable](a, b T) string {
	if a == b {
		return fmt.Sprint(a)
	}
	return fmt.Sprint(a, ", ", b)
}

func moves(w io.Writer, title string, list []Move, all bool) {
	var lines []string
	for _, m := range list {
		lines = append(lines, fmt.Sprintf("%s: %s, %s", m.Pod, node(m.A), node(m.B)))
	}
	names(w, title, lines, all)
}

func node(name string) string {
	if name == "" {
		return "no node"
	}
	return name
}

func names(w io.Writer, title string, list []string, all bool) {
	if len(list) == 0 {
		return
	}
	terminal.Fprintf(w, "\n%s\n", title)
	rest := 0
	if !all && len(list) > shown {
		list, rest = list[:shown], len(list)-shown
	}
	for _, line := range list {
		terminal.Fprintf(w, "  %s\n", line)
	}
	terminal.More(w, "  ", rest)
}

// Changed is what came of a record under another configuration or seed.
type Changed struct {
	Notes     []string  `json:"notes,omitempty"` // such as pods that no profile serves
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	Replayed  Side      `json:"replayed"`
	Same      int       `json:"same"` // pods on the node that the record has
	Elsewhere []Move    `json:"elsewhere"`
}

// ChangedOf compares the day with what the record says of pods' nodes.
func ChangedOf(name string, d *Day) *Changed {
	c := &Changed{From: d.From, To: d.To, Replayed: SideOf(name, d)}
	c.Same, c.Elsewhere = d.Against()
	c.Notes = d.unserved(name)
	return c
}

// Write writes it as a table. all names every pod.
func (c *Changed) Write(w io.Writer, all bool) error {
	noted(w, c.Notes)
	terminal.Fprintf(w, "%s to %s, under %s\n\n", clock(c.From), clock(c.To), c.Replayed.Name)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, cell := range c.Replayed.cells() {
		terminal.Fprintf(t, "%s\t%s\n", cell[0], cell[1])
	}
	if err := t.Flush(); err != nil {
		return err
	}
	terminal.Fprintf(w, "\n%s on the node that the record has, %d not\n", terminal.Count(c.Same, "pod"), len(c.Elsewhere))
	moves(w, "RECORDED, REPLAYED", c.Elsewhere, all)
	return nil
}

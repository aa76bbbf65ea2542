package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/sim"
)

// Table writes the result for people. Wide adds what the short form cuts and
// a line for each pod. It writes the answers of nodes when they are given: those
// of a large cluster are more than memory holds.
type Table struct {
	out     io.Writer
	seed    uint64
	ignored map[string]int
	wide    bool
	last    map[string]*decision.Decision
	err     error
}

// NewTable begins the result.
func NewTable(out io.Writer, seed uint64, ignored map[string]int, wide bool) *Table {
	return &Table{out: out, seed: seed, ignored: ignored, wide: wide, last: map[string]*decision.Decision{}}
}

// AttemptDone takes note of the next decision. Of a large cluster the short form
// keeps the answers of the best nodes and of some that are not feasible.
func (t *Table) AttemptDone(d *decision.Decision) {
	switch short := *d; {
	case t.wide && len(d.Nodes) > 0:
		var b strings.Builder
		answers(&b, d)
		b.WriteString("\n")
		if t.err == nil {
			_, t.err = io.WriteString(t.out, b.String())
		}
		short.Nodes = nil
		d = &short
	case len(d.Nodes) > shortNodes:
		short.Nodes = notable(d.Nodes)
		d = &short
	}
	t.last[d.Pod.String()] = d
}

// notable picks the feasible nodes with the highest totals and the first that
// are not feasible.
func notable(nodes []decision.Node) []decision.Node {
	var best, rest []decision.Node
	for _, n := range nodes {
		if n.Feasible {
			best = append(best, n)
		} else if len(rest) < shortAnswers {
			rest = append(rest, n)
		}
	}
	slices.SortStableFunc(best, func(x, y decision.Node) int { return cmp.Compare(y.Total, x.Total) })
	return slices.Concat(best[:min(len(best), shortAnswers)], rest)
}

// Finish writes the result.
func (t *Table) Finish(r *sim.Result) error {
	var b strings.Builder
	nodes := r.Cluster.Nodes()
	evicted := ""
	if n := len(r.Evicted); n > 0 {
		evicted = fmt.Sprintf(", %d evicted", n)
	}
	terminal.Fprintf(&b, "%s placed, %d pending%s, on %s (%s, seed %d)\n",
		terminal.Count(len(r.Placed), "pod"), len(r.Unplaced), evicted, terminal.Count(len(nodes), "node"), terminal.Count(r.Decisions, "decision"), t.seed)
	t.nodes(&b, r, nodes)
	t.pending(&b, r)
	t.evicted(&b, "EVICTED", r.Evicted)
	if t.wide {
		t.pods(&b, r)
	}
	t.explained(&b)
	if len(t.ignored) > 0 {
		b.WriteString("\nIGNORED (kinds and versions that a simulation does not read)\n")
		for _, kind := range slices.Sorted(maps.Keys(t.ignored)) {
			terminal.Fprintf(&b, "  %d %s\n", t.ignored[kind], kind)
		}
	}
	return t.end(b.String())
}

// end writes the rest of the text and returns the first error.
func (t *Table) end(text string) error {
	_, err := io.WriteString(t.out, text)
	return cmp.Or(t.err, err)
}

// The short form shows this many nodes (and evicted pods), names in a list, and nodes of a kind
// where a decision is explained.
const (
	shortNodes   = 40
	shortNames   = 4
	shortAnswers = 5
)

func (t *Table) nodes(b *strings.Builder, r *sim.Result, nodes []*object.Node) {
	if len(nodes) == 0 {
		return
	}
	placed := map[string][]string{}
	for _, pod := range slices.Sorted(maps.Keys(r.Placed)) {
		placed[r.Placed[pod]] = append(placed[r.Placed[pod]], pod)
	}
	use, total := usage(r.Cluster)
	shown := nodes
	if !t.wide && len(nodes) > shortNodes {
		shown = slices.Clone(nodes)
		slices.SortStableFunc(shown, func(x, y *object.Node) int {
			return cmp.Compare(len(placed[y.Name]), len(placed[x.Name]))
		})
		shown = shown[:shortNodes]
	}
	resources := offered(nodes)
	b.WriteString("\n")
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	terminal.Fprintf(w, "NODE\tPODS")
	for _, name := range resources {
		terminal.Fprintf(w, "\t%s", strings.ToUpper(string(name)))
	}
	terminal.Fprintf(w, "\tPLACED HERE\n")
	for _, n := range shown {
		line(w, n.Name, use[n.Name], resources)
		terminal.Fprintf(w, "\t%s\n", cmp.Or(t.names(placed[n.Name]), "-"))
	}
	if len(nodes) > 1 {
		line(w, "all", total, resources)
		terminal.Fprintf(w, "\t%s\n", terminal.Count(len(r.Placed), "pod"))
	}
	_ = w.Flush() // to memory
	if rest := len(nodes) - len(shown); rest > 0 {
		terminal.Fprintf(b, "(and %s: -o wide)\n", terminal.Count(rest, "more node"))
	}
}

func line(w io.Writer, name string, l *load, resources []v1.ResourceName) {
	terminal.Fprintf(w, "%s\t%d/%d", name, l.pods, l.allowed)
	for _, r := range resources {
		terminal.Fprintf(w, "\t%s", l.share(r))
	}
}

func (t *Table) pending(b *strings.Builder, r *sim.Result) {
	because := map[string][]string{}
	for _, pod := range slices.Sorted(maps.Keys(r.Unplaced)) {
		because[r.Unplaced[pod]] = append(because[r.Unplaced[pod]], pod)
	}
	t.reasons(b, "PENDING", because)
}

// reasons writes names by what they have in common, the most of them first.
func (t *Table) reasons(b *strings.Builder, title string, because map[string][]string) {
	if len(because) == 0 {
		return
	}
	reasons := slices.SortedFunc(maps.Keys(because), func(x, y string) int {
		return cmp.Or(cmp.Compare(len(because[y]), len(because[x])), cmp.Compare(x, y))
	})
	terminal.Fprintf(b, "\n%s\n", title)
	for _, reason := range reasons {
		terminal.Fprintf(b, "  %s\n    %s\n", t.names(because[reason]), reason)
	}
}

// evicted writes a line for each pod that preemption took away.
func (t *Table) evicted(b *strings.Builder, title string, pods []sim.Eviction) {
	if len(pods) == 0 {
		return
	}
	shown := slices.SortedFunc(slices.Values(pods), func(x, y sim.Eviction) int { return cmp.Compare(x.Pod, y.Pod) })
	if !t.wide && len(shown) > shortNodes {
		shown = shown[:shortNodes]
	}
	terminal.Fprintf(b, "\n%s\n", title)
	for _, e := range shown {
		terminal.Fprintf(b, "  %s on %s, for %s\n", e.Pod, e.Node, e.For)
	}
	if rest := len(pods) - len(shown); rest > 0 {
		terminal.Fprintf(b, "  (and %s: -o wide)\n", terminal.Count(rest, "pod"))
	}
}

// pods writes a line for each pod that was decided on.
func (t *Table) pods(b *strings.Builder, r *sim.Result) {
	if len(t.last) == 0 {
		return
	}
	b.WriteString("\n")
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	terminal.Fprintf(w, "POD\tRESULT\tNODE\tSCORE\tEQUALS\tFEASIBLE\tATTEMPT\tREJECTED BY\n")
	for _, pod := range slices.Sorted(maps.Keys(t.last)) {
		d := t.last[pod]
		node, score, ties := "-", "-", "-"
		if d.Result == decision.ResultScheduled || d.Result == decision.ResultWaiting {
			node = d.Node
			if d.Ties > 0 {
				score, ties = fmt.Sprint(d.Score), fmt.Sprint(d.Ties)
			}
		} else if d.NominatedNode != "" {
			node = "(" + d.NominatedNode + ")"
		}
		result := string(d.Result)
		if _, there := r.Unplaced[pod]; !there && r.Placed[pod] == "" {
			result += ", then gone"
		}
		terminal.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d/%d\t%d\t%s\n", pod, result, node, score, ties,
			d.NodesFeasible, d.NodesTotal, d.Attempt, cmp.Or(strings.Join(rejectors(d), ", "), "-"))
	}
	_ = w.Flush() // to memory
}

// explained writes, for the last decision on each pod, the answers that were
// kept.
func (t *Table) explained(b *strings.Builder) {
	for _, pod := range slices.Sorted(maps.Keys(t.last)) {
		d := t.last[pod]
		if len(d.Nodes) == 0 {
			continue
		}
		b.WriteString("\n")
		answers(b, d)
	}
}

// answers writes what the nodes answer.
func answers(b *strings.Builder, d *decision.Decision) {
	terminal.Fprintf(b, "%s: %s %s\n", d.Pod, d.Result, cmp.Or(explain.Message(d), d.Node))
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	for i := range d.Nodes {
		terminal.Fprintf(w, "  %s\t%s\n", d.Nodes[i].Name, answer(&d.Nodes[i]))
	}
	_ = w.Flush() // to memory
	if rest := d.NodesTotal - len(d.Nodes); rest > 0 {
		terminal.Fprintf(b, "  (and %s: -o wide)\n", terminal.Count(rest, "node"))
	}
}

func answer(n *decision.Node) string {
	if !n.Feasible {
		var parts []string
		for _, k := range n.Blockers {
			parts = append(parts, fmt.Sprintf("%s: %s", k.Plugin, strings.Join(k.Reasons, ", ")))
		}
		return strings.Join(parts, "; ")
	}
	if len(n.Scores) == 0 {
		return "feasible"
	}
	var parts []string
	for _, s := range n.Scores {
		parts = append(parts, fmt.Sprintf("%s %d×%d", s.Plugin, s.Score, s.Weight))
	}
	return fmt.Sprintf("score %d = %s", n.Total, strings.Join(parts, " + "))
}

func (t *Table) names(names []string) string {
	if !t.wide && len(names) > shortNames+1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shortNames], ", "), len(names)-shortNames)
	}
	return strings.Join(names, ", ")
}

// rejectors names the plugins that rejected the pod, sorted.
func rejectors(d *decision.Decision) []string {
	if len(d.PendingBy) == 0 {
		return d.RejectedBy
	}
	all := slices.Sorted(slices.Values(slices.Concat(d.RejectedBy, d.PendingBy)))
	return slices.Compact(all)
}

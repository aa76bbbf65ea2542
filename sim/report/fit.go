package report

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/sim/whatif"
)

// Fitting is an answer of `berth fit`: as JSON it is an object of kind FitResult.
type Fitting interface {
	Text(io.Writer) error
}

type kind struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

var fitKind = kind{"berth.dev/v1alpha1", "FitResult"}

type podsFit struct {
	kind
	After []string       `json:"after,omitempty"`
	Pod   string         `json:"pod"`
	Fits  int            `json:"fits"`
	Nodes map[string]int `json:"nodes"`
	Stops string         `json:"stops"`
}

type nodesFit struct {
	kind
	After     []string          `json:"after,omitempty"`
	NodesLike string            `json:"nodesLike"`
	Nodes     int               `json:"nodes"`
	Placed    int               `json:"placed"`
	Unplaced  map[string]string `json:"unplaced"`
}

// PodsFit is the answer how many more of a pod fit after changes.
func PodsFit(r *whatif.PodsFit, after []whatif.Change) Fitting {
	return &podsFit{fitKind, written(after), r.Pod, r.Fits, r.Nodes, r.Stops}
}

// NodesFit is the answer how few more nodes place all pods after changes.
func NodesFit(n *whatif.NodesFit, after []whatif.Change) Fitting {
	return &nodesFit{fitKind, written(after), n.Shape, n.Nodes, n.Placed, n.Unplaced}
}

func written(changes []whatif.Change) (all []string) {
	for i := range changes {
		all = append(all, changes[i].String())
	}
	return all
}

// following begins a sentence with the changes after which it holds.
func following(changes []string) string {
	if len(changes) == 0 {
		return ""
	}
	return "after " + strings.Join(changes, ", ") + ": "
}

// Text writes the answer for people.
func (r *podsFit) Text(out io.Writer) error {
	var b strings.Builder
	verb := "fit"
	if r.Fits == 1 {
		verb = "fits"
	}
	terminal.Fprintf(&b, "%s%s like %s %s\n", following(r.After), count(r.Fits, "more pod"), r.Pod, verb)
	if len(r.Nodes) > 0 {
		nodes := slices.SortedFunc(maps.Keys(r.Nodes), func(x, y string) int {
			return cmp.Or(cmp.Compare(r.Nodes[y], r.Nodes[x]), cmp.Compare(x, y))
		})
		b.WriteString("\n")
		w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
		terminal.Fprintf(w, "NODE\tMORE PODS\n")
		for _, n := range nodes[:min(len(nodes), shortNodes)] {
			terminal.Fprintf(w, "%s\t%d\n", n, r.Nodes[n])
		}
		_ = w.Flush() // to memory
		if rest := len(nodes) - shortNodes; rest > 0 {
			terminal.Fprintf(&b, "(and %s: -o json)\n", count(rest, "more node"))
		}
	}
	terminal.Fprintf(&b, "\nWhat stops the next\n  %s\n", r.Stops)
	_, err := io.WriteString(out, b.String())
	return err
}

// Text writes the answer for people.
func (n *nodesFit) Text(out io.Writer) error {
	var b strings.Builder
	terminal.Fprintf(&b, "%s", following(n.After))
	switch {
	case n.Nodes > 0:
		verb := "place"
		if n.Nodes == 1 {
			verb = "places"
		}
		terminal.Fprintf(&b, "%s like %s %s %s\n", count(n.Nodes, "more node"), n.NodesLike, verb, count(n.Placed, "more pod"))
	case len(n.Unplaced) > 0:
		terminal.Fprintf(&b, "no number of nodes like %s places a pending pod\n", n.NodesLike)
	default:
		terminal.Fprintf(&b, "no node is missing: every pod has its place\n")
	}
	because := map[string][]string{}
	for _, pod := range slices.Sorted(maps.Keys(n.Unplaced)) {
		because[n.Unplaced[pod]] = append(because[n.Unplaced[pod]], pod)
	}
	(&Table{}).reasons(&b, "STILL PENDING", because)
	_, err := io.WriteString(out, b.String())
	return err
}

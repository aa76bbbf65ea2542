package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/why"
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

var fitKind = kind{why.APIVersion, "FitResult"}

type podsFit struct {
	kind
	After []string `json:"after,omitempty"`
	Pod   string   `json:"pod"`
	// PodGroup is set if whole groups are counted, of PodsEach pods each.
	PodGroup string         `json:"podGroup,omitempty"`
	PodsEach int            `json:"podsEach,omitempty"`
	Fits     int            `json:"fits"`
	Nodes    map[string]int `json:"nodes"`
	stopped
}

// scaled is up to how many replicas a workload fits, or how often a file does.
type scaled struct {
	kind
	After    []string       `json:"after,omitempty"`
	Workload string         `json:"workload,omitempty"`
	Now      *int           `json:"now,omitempty"`
	File     string         `json:"file,omitempty"`
	Pods     map[string]int `json:"pods,omitempty"`
	Fits     int            `json:"fits"`
	Nodes    map[string]int `json:"nodes"`
	stopped
}

// stopped is what stops the next pod.
type stopped struct {
	Stops   string   `json:"stops"`
	Nearest *nearest `json:"nearest,omitempty"`
}

type nearest struct {
	Node  string                                `json:"node"`
	Lacks map[v1.ResourceName]resource.Quantity `json:"lacks"`
}

type nodesFit struct {
	kind
	After     []string          `json:"after,omitempty"`
	NodesLike string            `json:"nodesLike"`
	Nodes     int               `json:"nodes"`
	Placed    int               `json:"placed"`
	Unplaced  map[string]string `json:"unplaced"`
	NoPlace   map[string]string `json:"noPlace,omitempty"`
	*priced
}

// priced is what nodes with prices cost.
type priced struct {
	Price  float64 `json:"price"`
	Shapes []shape `json:"shapes"`
	Proven bool    `json:"proven"`
	Tried  int     `json:"tried"`
	total  whatif.Price
}

type shape struct {
	Shape string  `json:"shape"`
	Price float64 `json:"price"`
	Nodes int     `json:"nodes"`
	each  whatif.Price
}

// PodsFit is the answer how many more of a pod fit after changes.
func PodsFit(r *whatif.PodsFit, after []whatif.Change) Fitting {
	return &podsFit{fitKind, written(after), r.Pod, r.Group, r.Size, r.Fits, r.Nodes, stoppedBy(r.Stops, r.Nearest)}
}

// Scaled is the answer up to how many replicas fit after changes.
func Scaled(r *whatif.Scaled, after []whatif.Change) Fitting {
	s := &scaled{fitKind, written(after), r.Workload, nil, r.File, r.Pods, r.Fits, r.Nodes, stoppedBy(r.Stops, r.Nearest)}
	if r.File == "" {
		s.Now = &r.Now
	}
	return s
}

func stoppedBy(reason string, lacks *whatif.Shortage) stopped {
	s := stopped{Stops: reason}
	if lacks != nil {
		s.Nearest = &nearest{lacks.Node, lacks.Lacks}
	}
	return s
}

// NodesFit is the answer how few more nodes place all pods after changes.
func NodesFit(n *whatif.NodesFit, after []whatif.Change) Fitting {
	var names []string
	p := &priced{n.Price().Units(), nil, n.Proven, n.Tried, n.Price()}
	for i, s := range n.Shapes {
		names = append(names, s.Shape)
		p.Shapes = append(p.Shapes, shape{s.Shape, s.Price.Units(), n.Counts[i], s.Price})
	}
	if n.Shapes[0].Price == 0 {
		p = nil
	}
	return &nodesFit{fitKind, written(after), strings.Join(names, " "), n.Nodes(), n.Placed, n.Unplaced, n.NoPlace, p}
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
	if r.PodGroup != "" {
		terminal.Fprintf(&b, "%s%s like %s %s, of %s each\n", following(r.After), terminal.Count(r.Fits, "more pod group"), r.PodGroup, verb, terminal.Count(r.PodsEach, "pod"))
	} else {
		terminal.Fprintf(&b, "%s%s like %s %s\n", following(r.After), terminal.Count(r.Fits, "more pod"), r.Pod, verb)
	}
	perNode(&b, "MORE PODS", r.Nodes)
	r.text(&b, "What stops the next")
	_, err := io.WriteString(out, b.String())
	return err
}

// Text writes the answer for people.
func (s *scaled) Text(out io.Writer) error {
	var b strings.Builder
	terminal.Fprintf(&b, "%s", following(s.After))
	if s.File == "" {
		terminal.Fprintf(&b, "%s fits up to %s (now %d)\n", s.Workload, terminal.Count(s.Fits, "replica"), *s.Now)
		perNode(&b, "REPLICAS", s.Nodes)
		s.text(&b, "What stops the "+ordinal(s.Fits+1))
	} else {
		terminal.Fprintf(&b, "%s fits %s: %s\n", s.File, terminal.Count(s.Fits, "time"), parts(s.Pods))
		perNode(&b, "PODS", s.Nodes)
		s.text(&b, "What stops the "+ordinal(s.Fits+1))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// parts names what is added each time.
func parts(pods map[string]int) string {
	all, names := 0, slices.Sorted(maps.Keys(pods))
	for i, name := range names {
		all += pods[name]
		if pods[name] > 1 {
			names[i] = fmt.Sprintf("%s (%d)", name, pods[name])
		}
	}
	rest := ""
	if n := len(names) - shortNames; n > 0 {
		names, rest = names[:shortNames], fmt.Sprintf(" and %d more", n)
	}
	return terminal.Count(all, "pod") + " each, of " + strings.Join(names, ", ") + rest
}

// ordinal is 1st, 2nd, 3rd, 4th.
func ordinal(n int) string {
	suffix := "th"
	if n/10%10 != 1 && n%10 >= 1 && n%10 <= 3 {
		suffix = []string{"st", "nd", "rd"}[n%10-1]
	}
	return strconv.Itoa(n) + suffix
}

// perNode lists the nodes, those with most first.
func perNode(b *strings.Builder, title string, pods map[string]int) {
	if len(pods) == 0 {
		return
	}
	nodes := slices.SortedFunc(maps.Keys(pods), func(x, y string) int {
		return cmp.Or(cmp.Compare(pods[y], pods[x]), cmp.Compare(x, y))
	})
	b.WriteString("\n")
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	terminal.Fprintf(w, "NODE\t%s\n", title)
	for _, n := range nodes[:min(len(nodes), shortNodes)] {
		terminal.Fprintf(w, "%s\t%d\n", n, pods[n])
	}
	_ = w.Flush() // to memory
	if rest := len(nodes) - shortNodes; rest > 0 {
		terminal.Fprintf(b, "(and %s: -o json)\n", terminal.Count(rest, "more node"))
	}
}

func (s *stopped) text(b *strings.Builder, title string) {
	terminal.Fprintf(b, "\n%s\n  %s\n", title, s.Stops)
	if s.Nearest == nil {
		return
	}
	var lacks []string
	for _, name := range slices.Sorted(maps.Keys(s.Nearest.Lacks)) {
		q := s.Nearest.Lacks[name]
		if name == v1.ResourcePods {
			lacks = append(lacks, "room for "+terminal.Count(int(q.Value()), "pod"))
			continue
		}
		lacks = append(lacks, q.String()+" "+string(name))
	}
	terminal.Fprintf(b, "  nearest is %s, which lacks %s\n", s.Nearest.Node, strings.Join(lacks, " and "))
}

// Text writes the answer for people.
func (n *nodesFit) Text(out io.Writer) error {
	var b strings.Builder
	terminal.Fprintf(&b, "%s", following(n.After))
	like, cost := " like "+n.NodesLike, ""
	if n.priced != nil {
		cost = ", for " + n.total.String()
		if len(n.Shapes) > 1 {
			like = ""
		}
	}
	switch {
	case n.Nodes > 0:
		verb := "place"
		if n.Nodes == 1 {
			verb = "places"
		}
		terminal.Fprintf(&b, "%s%s %s %s%s\n", terminal.Count(n.Nodes, "more node"), like, verb, terminal.Count(n.Placed, "more pod"), cost)
		n.prices(&b)
	case len(n.Unplaced) > 0 && like == "":
		terminal.Fprintf(&b, "no number of such nodes places a pending pod\n")
	case len(n.Unplaced) > 0:
		terminal.Fprintf(&b, "no number of nodes%s places a pending pod\n", like)
	default:
		terminal.Fprintf(&b, "no node is missing: every pod has its place\n")
	}
	(&Table{}).reasons(&b, "STILL PENDING", byReason(n.Unplaced))
	(&Table{}).reasons(&b, "PODS OF DAEMONSETS WITHOUT A PLACE ON THE NEW NODES", byReason(n.NoPlace))
	_, err := io.WriteString(out, b.String())
	return err
}

// byReason returns the pods by the reason that each has.
func byReason(why map[string]string) map[string][]string {
	pods := map[string][]string{}
	for _, pod := range slices.Sorted(maps.Keys(why)) {
		pods[why[pod]] = append(pods[why[pod]], pod)
	}
	return pods
}

// prices lists the nodes by shape, if there are several, and says how sure it is that they are
// the cheapest.
func (n *nodesFit) prices(b *strings.Builder) {
	if n.priced == nil || len(n.Shapes) < 2 {
		return
	}
	b.WriteString("\n")
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	terminal.Fprintf(w, "NODES LIKE\tNUMBER\tEACH\tPRICE\n")
	for i := range n.Shapes {
		s := &n.Shapes[i]
		terminal.Fprintf(w, "%s\t%d\t%s\t%s\n", s.Shape, s.Nodes, s.each, whatif.Price(s.Nodes)*s.each)
	}
	_ = w.Flush() // to memory
	if n.Proven {
		terminal.Fprintf(b, "\nNo cheaper set of such nodes places as many pods, if more nodes never place fewer: each was tried, or is part of one that was and places fewer (%s tried).\n", terminal.Count(n.Tried, "set"))
	} else {
		terminal.Fprintf(b, "\nThe cheapest of %s that were tried. A cheaper one may do.\n", terminal.Count(n.Tried, "set"))
	}
}

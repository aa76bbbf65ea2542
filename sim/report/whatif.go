package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/sim"
	"github.com/berth-scheduler/berth/sim/whatif"
)

// move is a pod that had to start again; To is null when it has no node.
type move struct {
	Pod      string  `json:"pod"`
	From     string  `json:"from"`
	To       *string `json:"to"`
	Workload string  `json:"workload,omitempty"`
	// InAnyCase is set if it has to start again without the changes, too.
	InAnyCase bool `json:"inAnyCase,omitempty"`
}

type stay struct {
	Pod  string `json:"pod"`
	Node string `json:"node"`
	Why  string `json:"why"`
}

// kept is a pod that was not evicted, and the budgets that held it back.
type kept struct {
	Pod     string      `json:"pod"`
	Node    string      `json:"node"`
	Why     string      `json:"why"`
	Budgets []budgetUse `json:"budgets"`
}

type eviction struct {
	Pod  string `json:"pod"`
	Node string `json:"node"`
	For  string `json:"for"`
	// InAnyCase is set if it is evicted without the changes of what-if, too.
	InAnyCase bool `json:"inAnyCase,omitempty"`
}

type budgetUse struct {
	Budget  string `json:"budget"`
	Allowed int    `json:"allowed"`
	Down    int    `json:"down"`
	Broken  bool   `json:"broken"`
}

// room is how much of a resource there is and is taken: of CPU thousandths, of
// all others units.
type room struct {
	Allocatable int64 `json:"allocatable"`
	Requested   int64 `json:"requested"`
	Free        int64 `json:"free"`
}

type beforeAfter struct {
	Before map[v1.ResourceName]room `json:"before"`
	After  map[v1.ResourceName]room `json:"after"`
}

// FinishWhatIf ends the result of a run with changes.
func (j *JSON) FinishWhatIf(r *whatif.Result) error {
	all := members(r)
	if j.Nodes {
		all = append(all, nodesOf(r))
	}
	return j.finish(r.Result, all...)
}

// FinishWhatIf writes the result of a run with changes.
func (y *YAML) FinishWhatIf(r *whatif.Result) error { return y.finish(r.Result, members(r)...) }

// evictions returns the pods that were evicted for others, in the order of the run. Those of inAnyCase
// would be without the changes, too.
func evictions(r *sim.Result, inAnyCase map[string]string) []eviction {
	evicted := []eviction{}
	for _, e := range r.Evicted {
		_, loses := inAnyCase[e.Pod]
		evicted = append(evicted, eviction{e.Pod, e.Node, e.For, loses})
	}
	return evicted
}

func members(r *whatif.Result) []member {
	changes, moved := []string{}, []move{}
	for i := range r.Changes {
		changes = append(changes, r.Changes[i].String())
	}
	for _, m := range r.Moved {
		_, loses := r.InAnyCase[m.Pod]
		out := move{Pod: m.Pod, From: m.From, Workload: m.Workload, InAnyCase: loses}
		if m.To != "" {
			out.To = &m.To
		}
		moved = append(moved, out)
	}
	stays := func(list []whatif.Stay) []stay {
		out := []stay{}
		for _, s := range list {
			out = append(out, stay(s))
		}
		return out
	}
	budgetUses := func(list []whatif.BudgetUse) []budgetUse {
		out := []budgetUse{}
		for _, b := range list {
			out = append(out, budgetUse{b.Budget, b.Allowed, b.Down, b.Broken()})
		}
		return out
	}
	keeps := []kept{}
	for _, k := range r.Kept {
		keeps = append(keeps, kept{k.Pod, k.Node, k.Why, budgetUses(r.KeptBy[k.Pod])})
	}
	return []member{{"changes", changes}, {"moved", moved}, {"gone", stays(r.Gone)}, {"kept", keeps}, {"stayed", stays(r.Stayed)},
		{"evicted", evictions(r.Result, r.InAnyCase)}, {"budgets", budgetUses(r.Budgets)}, {"resources", beforeAfter{rooms(r.Before), rooms(r.Cluster)}}}
}

// rooms sums up all nodes, by resource.
func rooms(c *sim.Cluster) map[v1.ResourceName]room {
	_, total := usage(c)
	all := map[v1.ResourceName]room{v1.ResourcePods: {total.allowed, total.pods, total.allowed - total.pods}}
	for _, name := range offered(c.Nodes()) {
		all[name] = room{total.there[name], total.taken[name], total.there[name] - total.taken[name]}
	}
	return all
}

// FinishWhatIf writes the result of a run with changes.
func (t *Table) FinishWhatIf(r *whatif.Result) error {
	var b strings.Builder
	terminal.Fprintf(&b, "%s\n", headline(r))
	t.moved(&b, r)
	t.placed(&b, r)
	t.stays(&b, "NOT EVICTED", r.Kept)
	changed, anyway := parted(r)
	t.evicted(&b, "EVICTED", changed)
	t.evicted(&b, "EVICTED IN ANY CASE", anyway)
	t.unplaced(&b, r)
	t.stays(&b, "GONE", r.Gone)
	t.stays(&b, "LEFT BY THE DRAIN", r.Stayed)
	budgets(&b, r)
	resources(&b, r)
	if t.wide {
		t.pods(&b, r.Result)
	}
	t.explained(&b)
	return t.end(b.String())
}

// parted splits the evictions. anyway are those of pods that lose their node without the changes,
// too. changed are the others.
func parted(r *whatif.Result) (changed, anyway []sim.Eviction) {
	for _, e := range r.Evicted {
		if _, loses := r.InAnyCase[e.Pod]; loses {
			anyway = append(anyway, e)
		} else {
			changed = append(changed, e)
		}
	}
	return changed, anyway
}

// listed reports whether the pod is one of those that were evicted.
func listed(evicted []sim.Eviction, pod string) bool {
	return slices.ContainsFunc(evicted, func(e sim.Eviction) bool { return e.Pod == pod })
}

func headline(r *whatif.Result) string {
	moved, fresh, stuck, other := 0, 0, 0, 0
	changed, anyway := parted(r)
	known := map[string]bool{} // the pods that are not new
	maps.Copy(known, r.Pending)
	for _, m := range r.Moved {
		known[m.Pod] = true
		switch {
		case m.To != "" && listed(anyway, m.Pod), r.StuckInAnyCase(m.Pod):
		case m.To != "":
			moved++
		case r.OtherScheduler[m.Pod]:
			other++
		default:
			stuck++
		}
	}
	for pod := range r.Placed { // any order: a count
		if !known[pod] {
			fresh++
		}
	}
	for pod := range r.Unplaced { // any order: counts
		switch {
		case known[pod]:
		case r.OtherScheduler[pod]:
			other++
		default:
			stuck++
		}
	}
	var what []string
	for i := range r.Changes {
		what = append(what, r.Changes[i].String())
	}
	text := fmt.Sprintf("%s: %s", cmp.Or(strings.Join(what, ", "), "no change"), moves(moved))
	for _, part := range []struct {
		n    int
		text string
	}{
		{fresh, "%s new"}, {stuck, "%s without a node"}, {other, "%s of another scheduler"}, {len(r.Kept), "%s not evicted"}, {len(changed), "%s preempted"}, {len(anyway), "%s preempted in any case"}, {len(r.Gone), "%s gone"}, {len(r.Stayed), "%s left by the drain"},
	} {
		if part.n > 0 {
			text += ", " + fmt.Sprintf(part.text, terminal.Count(part.n, "pod"))
		}
	}
	return text
}

func moves(n int) string {
	if n == 1 {
		return "1 pod moves"
	}
	return fmt.Sprintf("%d pods move", n)
}

// moved writes a line for each workload whose pods have another node, or the same anew; in
// the wide form for each pod.
func (t *Table) moved(b *strings.Builder, r *whatif.Result) {
	var rows [][3]string
	_, anyway := parted(r)
	lines := map[string][]whatif.Move{}
	for _, m := range r.Moved {
		if m.To == "" || listed(anyway, m.Pod) {
			continue
		}
		key := cmp.Or(m.Workload, m.Pod)
		if t.wide {
			key = m.Pod
		}
		lines[key] = append(lines[key], m)
	}
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		pods := lines[key]
		name := pods[0].Pod
		if len(pods) > 1 {
			name = fmt.Sprintf("%s: %s", key, terminal.Count(len(pods), "pod"))
		}
		from, to := map[string]int{}, map[string]int{}
		for _, m := range pods {
			from[m.From]++
			to[m.To]++
		}
		rows = append(rows, [3]string{name, t.counted(from), t.counted(to)})
	}
	if len(rows) == 0 {
		return
	}
	shown := rows
	if !t.wide {
		shown = rows[:min(len(rows), shortNodes)]
	}
	b.WriteString("\n")
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	terminal.Fprintf(w, "MOVED\tFROM\tTO\n")
	for _, row := range shown {
		terminal.Fprintf(w, "%s\t%s\t%s\n", row[0], row[1], row[2])
	}
	_ = w.Flush() // to memory
	if rest := len(rows) - len(shown); rest > 0 {
		terminal.Fprintf(b, "(and %s: -o wide)\n", terminal.Count(rest, "more line"))
	}
}

// counted names the nodes, with how many there are of each where these are several.
func (t *Table) counted(nodes map[string]int) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if n := nodes[name]; n > 1 && len(nodes) > 1 {
			name = fmt.Sprintf("%s (%d)", name, n)
		}
		names = append(names, name)
	}
	return t.names(names)
}

// placed writes where the pods went that had no node, or did not exist.
func (t *Table) placed(b *strings.Builder, r *whatif.Result) {
	ran := map[string]bool{}
	for _, m := range r.Moved {
		ran[m.Pod] = true
	}
	on := map[string][]string{}
	for _, pod := range slices.Sorted(maps.Keys(r.Placed)) {
		if !ran[pod] {
			on[r.Placed[pod]] = append(on[r.Placed[pod]], pod)
		}
	}
	if len(on) == 0 {
		return
	}
	b.WriteString("\n")
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	terminal.Fprintf(w, "NODE\tNEW HERE\n")
	for _, node := range slices.Sorted(maps.Keys(on)) {
		terminal.Fprintf(w, "%s\t%s\n", node, t.names(on[node]))
	}
	_ = w.Flush() // to memory
}

// stays writes pods that have one reason in common together.
func (t *Table) stays(b *strings.Builder, title string, list []whatif.Stay) {
	because := map[string][]string{}
	for _, s := range list {
		name := s.Pod
		if s.Node != "" {
			name += " on " + s.Node
		}
		because[s.Why] = append(because[s.Why], name)
	}
	t.reasons(b, title, because)
}

// unplaced tells the pods that lost their node from those that had none.
func (t *Table) unplaced(b *strings.Builder, r *whatif.Result) {
	stuck, anyway, pending, other := map[string][]string{}, map[string][]string{}, map[string][]string{}, map[string][]string{}
	for _, pod := range slices.Sorted(maps.Keys(r.Unplaced)) {
		why := r.Unplaced[pod]
		switch {
		case r.OtherScheduler[pod]:
			other[why] = append(other[why], pod)
		case r.Pending[pod]:
			pending[why] = append(pending[why], pod)
		case r.StuckInAnyCase(pod):
			anyway[why] = append(anyway[why], pod)
		default:
			stuck[why] = append(stuck[why], pod)
		}
	}
	t.reasons(b, "WITHOUT A NODE", stuck)
	t.reasons(b, "WITHOUT A NODE IN ANY CASE", anyway)
	t.reasons(b, "PENDING BEFORE, AND STILL", pending)
	t.reasons(b, "OF ANOTHER SCHEDULER, NOT TRIED", other)
}

func budgets(b *strings.Builder, r *whatif.Result) {
	if len(r.Budgets) == 0 {
		return
	}
	b.WriteString("\n")
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	terminal.Fprintf(w, "BUDGET\tALLOWS\tDOWN AT ONCE\t\n")
	for _, u := range r.Budgets {
		verdict := "respected"
		if u.Broken() {
			verdict = "broken"
		}
		terminal.Fprintf(w, "%s\t%d\t%d\t%s\n", u.Budget, u.Allowed, u.Down, verdict)
	}
	_ = w.Flush() // to memory
}

// resources writes what is left of each resource before and after.
func resources(b *strings.Builder, r *whatif.Result) {
	before, after := rooms(r.Before), rooms(r.Cluster)
	_, was := usage(r.Before)
	_, is := usage(r.Cluster)
	names := offered(append(r.Before.Nodes(), r.Cluster.Nodes()...))
	b.WriteString("\n")
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	terminal.Fprintf(w, "RESOURCE\tBEFORE\tLEFT\tAFTER\tLEFT\n")
	terminal.Fprintf(w, "pods\t%d/%d\t%d\t%d/%d\t%d\n", was.pods, was.allowed, was.allowed-was.pods, is.pods, is.allowed, is.allowed-is.pods)
	for _, name := range names {
		terminal.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", name, was.share(name), amount(name, before[name].Free), is.share(name), amount(name, after[name].Free))
	}
	_ = w.Flush() // to memory
}

package records

import (
	"cmp"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/plugins/names"
)

// Blocking is what blocks pods that wait, and how many of them. A pod counts once.
type Blocking struct {
	Plugin string `json:"plugin"`
	Reason string `json:"reason"`
	Pods   int    `json:"pods"`
	// Workloads are whose pods these are, those with most pods first.
	Workloads []Workload `json:"workloads,omitempty"`
}

// Workload is a workload and how many of its pods are meant.
type Workload struct {
	Name string `json:"name"`
	Pods int    `json:"pods"`
}

// mostWorkloads bounds the workloads that a cause names.
const mostWorkloads = 5

// Rank ranks what blocks pods, by their last attempts. workload names the workload of the
// pod of a record.
func Rank(last iter.Seq[Record], workload func(*Record) string) []Blocking {
	type cause struct {
		texts     map[string]bool // at most two: whether they differ is what counts
		workloads map[string]int
		pods      int
	}
	causes := map[[2]string]*cause{}
	for r := range last {
		plugin, text := r.mainReason()
		key := [2]string{plugin, withoutNames(text)}
		c := causes[key]
		if c == nil {
			c = &cause{texts: map[string]bool{}, workloads: map[string]int{}}
			causes[key] = c
		}
		if c.pods++; len(c.texts) < 2 {
			c.texts[text] = true
		}
		c.workloads[workload(&r)]++
	}
	ranked := []Blocking{}
	for key, c := range causes { // any order: sorted below
		b := Blocking{Plugin: key[0], Reason: key[1], Pods: c.pods, Workloads: largest(c.workloads)}
		if len(c.texts) == 1 {
			b.Reason = slices.Collect(maps.Keys(c.texts))[0]
		}
		ranked = append(ranked, b)
	}
	slices.SortFunc(ranked, func(a, b Blocking) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.Reason, b.Reason))
	})
	return ranked
}

// quoted matches a name in a reason. It is left out, so that pods with a claim each have the same
// cause.
var quoted = regexp.MustCompile(`"[^"]*"`)

func withoutNames(reason string) string { return quoted.ReplaceAllString(reason, `"..."`) }

// available is how many nodes there are, and of which domain, which differs from attempt to attempt.
var available = regexp.MustCompile(`^\d+/\d+ nodes (?:of [^:]+ )?are available: `)

// Binding is what failed where the API server, an extender or a Bind plugin did not bind the pod.
const Binding = "binding"

// failing finds, in the message of a failed attempt, the extension point and the plugin that failed.
var failing = regexp.MustCompile(`^running (?:(\w+) plugin "([^"]+)"|"([^"]+)" filter plugin): `)

// FailedBy returns what failed in an attempt that ended in an error: Binding, a plugin, or "error" where
// the message does not tell. It returns "" of all other records.
func (r *Record) FailedBy() string {
	if r.Type != Attempt || r.Result != string(decision.ResultError) {
		return ""
	}
	found := failing.FindStringSubmatch(r.Message)
	switch {
	case found == nil:
		return "error"
	case found[1] == "Bind":
		return Binding
	}
	return cmp.Or(found[2], found[3])
}

// Refusal returns the message of an attempt whose binding failed, without the plugin.
func (r *Record) Refusal() string { return failing.ReplaceAllString(r.Message, "") }

// meant are the plugins that say for which nodes a pod is meant: they come before those that look at what
// else a node has.
var meant = []string{names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity}

// mainReason returns the plugin and the reason that block the pod where it comes nearest: the one that came
// first on most nodes, of the reasons that other pods could take away by leaving; if there is none, of those on
// nodes that the pod is meant for; if there is none, of all others.
func (r *Record) mainReason() (plugin, reason string) {
	type key struct{ plugin, reason string }
	var tiers [3]map[key]int
	for _, b := range r.Blockers {
		tier := 0
		if b.Code == decision.UnschedulableAndUnresolvable.String() {
			if tier = 1; slices.Contains(meant, b.Plugin) {
				tier = 2
			}
		}
		if tiers[tier] == nil {
			tiers[tier] = map[key]int{}
		}
		for _, reason := range b.Reasons {
			tiers[tier][key{b.Plugin, reason}] += b.Nodes
		}
	}
	for _, nodes := range tiers {
		if len(nodes) == 0 {
			continue
		}
		best := slices.MinFunc(slices.Collect(maps.Keys(nodes)), func(a, b key) int {
			return cmp.Or(cmp.Compare(nodes[b], nodes[a]), cmp.Compare(a.plugin, b.plugin), cmp.Compare(a.reason, b.reason))
		})
		return best.plugin, best.reason
	}
	return cmp.Or(strings.Join(r.RejectedBy, ", "), r.FailedBy()), available.ReplaceAllString(r.Message, "")
}

// largest returns the workloads with most pods.
func largest(pods map[string]int) []Workload {
	var all []Workload
	for name, n := range pods { // any order: sorted below
		if name != "" {
			all = append(all, Workload{name, n})
		}
	}
	slices.SortFunc(all, func(a, b Workload) int { return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Name, b.Name)) })
	return all[:min(mostWorkloads, len(all))]
}

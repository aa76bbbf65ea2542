package why

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/workload"
)

// taintText says in which condition the nodes are, which taints of conditions are left over,
// and counts the others by the taints that the pod does not tolerate.
func (f *facts) taintText(nodes []string) string {
	mendable := false
	var first *time.Time // of the taints that no condition sets
	var parts []string
	if text := f.counted(nodes, "", func(n *v1.Node) []string {
		return keeping(f.pod, n, func(t *v1.Taint) string {
			if workload.Condition(t.Key) == "" || leftover(n, t.Key) != nil {
				return ""
			}
			mendable = mendable || !workload.Leaving(t.Key)
			return conditionText(n, t.Key)
		})
	}); text != "" {
		if len(nodes) == 1 {
			text = "node " + nodes[0] + " is " + text
		} else {
			text = "nodes are " + text
		}
		if mendable {
			text += ": mend " + terminal.Plural(len(nodes), "the node", "them")
		}
		parts = append(parts, text)
	}
	if text := f.counted(nodes, "", func(n *v1.Node) []string {
		return keeping(f.pod, n, func(t *v1.Taint) string { return leftoverText(n, t) })
	}); text != "" {
		parts = append(parts, text+": the node lifecycle controller should take it off, so look whether kube-controller-manager is well")
	}
	if text := f.counted(nodes, "taint ", func(n *v1.Node) []string {
		return keeping(f.pod, n, func(t *v1.Taint) string {
			if workload.Condition(t.Key) != "" || leftoverText(n, t) != "" {
				return ""
			}
			if at := t.TimeAdded; at != nil && (first == nil || at.Before(&metav1.Time{Time: *first})) {
				first = pointer(at.UTC())
			}
			return t.ToString() + f.meantToleration(t)
		})
	}); text != "" {
		parts = append(parts, text+" is not tolerated"+sinceText(first))
	}
	return strings.Join(parts, "; ")
}

// keeping returns, without repetition, the texts of the node's taints that the pod does
// not tolerate.
func keeping(p *object.Pod, n *v1.Node, text func(*v1.Taint) string) (texts []string) {
	for i := range n.Spec.Taints {
		if p.Tolerations.Admits(n.Spec.Taints[i:i+1], false) {
			continue
		}
		if t := text(&n.Spec.Taints[i]); t != "" && !slices.Contains(texts, t) {
			texts = append(texts, t)
		}
	}
	return texts
}

// leftover returns the condition of the node which says that it is not as the taint has it; nil
// if there is none.
func leftover(n *v1.Node, taint string) *v1.NodeCondition {
	of := conditionOf(taint)
	well := v1.ConditionFalse
	if of == v1.NodeReady {
		well = v1.ConditionTrue
	}
	at := slices.IndexFunc(n.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == of && c.Status == well })
	if of == "" || at < 0 {
		return nil
	}
	return &n.Status.Conditions[at]
}

// leftoverText says by which condition the taint is left over, or that the node is not cordoned;
// "" where neither says so.
func leftoverText(n *v1.Node, t *v1.Taint) string {
	if t.Key == v1.TaintNodeUnschedulable && !n.Spec.Unschedulable {
		return fmt.Sprintf("the taint %s of node %s is left over, as the node is not cordoned", t.ToString(), n.Name)
	}
	c := leftover(n, t.Key)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("the taint %s of node %s is left over, as its condition %s is %s%s", t.ToString(), n.Name, c.Type, c.Status, inBrackets(c.Reason, ""))
}

// mostMessage bounds what is quoted of a condition's message.
const mostMessage = 200

// conditionText is the condition that the taint stands for, with its reason and message
// where the node has them.
func conditionText(n *v1.Node, taint string) string {
	text := workload.Condition(taint)
	at := slices.IndexFunc(n.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == conditionOf(taint) })
	if at < 0 {
		return text
	}
	c := &n.Status.Conditions[at]
	why := c.Message[:min(mostMessage, len(c.Message))]
	switch {
	case c.Reason != "" && why != "":
		return fmt.Sprintf("%s (%s: %s)", text, c.Reason, why)
	case c.Reason+why != "":
		return fmt.Sprintf("%s (%s)", text, c.Reason+why)
	}
	return text
}

// conditionOf is the type of the condition for which a controller sets the taint.
func conditionOf(taint string) v1.NodeConditionType {
	switch taint {
	case v1.TaintNodeMemoryPressure:
		return v1.NodeMemoryPressure
	case v1.TaintNodeDiskPressure:
		return v1.NodeDiskPressure
	case v1.TaintNodePIDPressure:
		return v1.NodePIDPressure
	case v1.TaintNodeNetworkUnavailable:
		return v1.NodeNetworkUnavailable
	case v1.TaintNodeNotReady, v1.TaintNodeUnreachable:
		return v1.NodeReady
	}
	return ""
}

// counted lists what nodes have, the most frequent first.
func (f *facts) counted(nodes []string, what string, of func(*v1.Node) []string) string {
	counts := map[string]int{}
	for _, name := range nodes {
		if n := f.node(name); n != nil {
			for _, x := range of(n) {
				counts[x]++
			}
		}
	}
	sorted := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, x := range sorted {
		if sorted[i] = what + x; counts[x] < len(nodes) {
			sorted[i] += fmt.Sprintf(" (%d)", counts[x])
		}
	}
	return list(sorted, 4)
}

func (f *facts) node(name string) *v1.Node {
	if f.nodes == nil {
		f.nodes = map[string]*v1.Node{}
		for _, n := range f.cluster.Set.Nodes {
			f.nodes[n.Name] = n
		}
	}
	return f.nodes[name]
}

// affinityText says which labels are asked for, and what the nodes have instead.
func (f *facts) affinityText(nodes []string) string {
	var parts []string
	spec := &f.api.Spec
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		if text := f.labelText(key, nodes, func(v string, has bool) bool { return has && v == spec.NodeSelector[key] }); text != "" {
			parts = append(parts, fmt.Sprintf("the node selector wants %s=%s, %s", key, spec.NodeSelector[key], text)+f.meantLabel(key, spec.NodeSelector[key], nodes))
		}
	}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		if text := f.requiredText(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution, nodes); text != "" {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return "the profile's own node affinity does not match"
	}
	return strings.Join(parts, "; ")
}

// requiredText says what the required node affinity asks for, and which of it the nodes
// do not have; "" where all of them match.
func (f *facts) requiredText(required *v1.NodeSelector, nodes []string) string {
	selector := match.NewNodeSelector(nil, required)
	if !slices.ContainsFunc(nodes, func(name string) bool {
		n := f.node(name)
		return n != nil && !selector.Matches(match.Subject{Name: n.Name, Labels: n.Labels})
	}) {
		return ""
	}
	var terms []string
	for _, t := range required.NodeSelectorTerms {
		terms = append(terms, termText(t))
	}
	text := "the required node affinity wants " + strings.Join(terms, ", or ") + goneText(required, f.node)
	if len(terms) != 1 {
		return text
	}
	for _, e := range required.NodeSelectorTerms[0].MatchExpressions {
		one := match.NewNodeSelector(nil, &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{e}}}})
		right := func(v string, has bool) bool {
			labels := map[string]string{}
			if has {
				labels[e.Key] = v
			}
			return one.Matches(match.Subject{Labels: labels})
		}
		if has := f.labelText(e.Key, nodes, right); has != "" {
			text += ", " + has
			if e.Operator == v1.NodeSelectorOpIn && len(e.Values) == 1 {
				text += f.meantLabel(e.Key, e.Values[0], nodes)
			}
		}
	}
	return text
}

// goneText says which nodes that the affinity names do not exist, "" if none.
func goneText(required *v1.NodeSelector, node func(name string) *v1.Node) string {
	var gone []string
	for i := range required.NodeSelectorTerms {
		for _, e := range required.NodeSelectorTerms[i].MatchFields {
			for _, name := range e.Values {
				if e.Key == metav1.ObjectNameField && e.Operator == v1.NodeSelectorOpIn && node(name) == nil && !slices.Contains(gone, name) {
					gone = append(gone, name)
				}
			}
		}
	}
	switch len(gone) {
	case 0:
		return ""
	case 1:
		return ", and node " + gone[0] + " does not exist"
	}
	return ", and nodes " + list(gone, 3) + " do not exist"
}

// labelText says which values nodes have for the label that are not right.
func (f *facts) labelText(key string, nodes []string, right func(string, bool) bool) string {
	has, missing := map[string]int{}, 0
	for _, name := range nodes {
		if n := f.node(name); n != nil {
			v, ok := n.Labels[key]
			switch {
			case right(v, ok):
			case ok:
				has[v]++
			default:
				missing++
			}
		}
	}
	values := slices.SortedFunc(maps.Keys(has), func(a, b string) int { return cmp.Or(cmp.Compare(has[b], has[a]), cmp.Compare(a, b)) })
	if len(values) > 3 {
		values = append(values[:3:3], "...")
	}
	switch {
	case len(values) > 0 && missing > 0:
		return fmt.Sprintf("nodes have %s=%s, or no such label (%d)", key, strings.Join(values, " "), missing)
	case len(values) > 0:
		return fmt.Sprintf("nodes have %s=%s", key, strings.Join(values, " "))
	case missing > 0:
		return "nodes have no label " + key
	}
	return ""
}

func termText(t v1.NodeSelectorTerm) string {
	var parts []string
	for _, e := range slices.Concat(t.MatchExpressions, t.MatchFields) {
		text := e.Key + " " + string(e.Operator)
		if len(e.Values) > 0 {
			text += " [" + strings.Join(e.Values, " ") + "]"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " and ")
}

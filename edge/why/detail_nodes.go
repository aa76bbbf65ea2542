package why

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/match"
)

// taintText counts the nodes by the taints that the pod does not tolerate.
func (f *facts) taintText(nodes []string) string {
	return f.counted(nodes, "taint ", func(n *v1.Node) []string {
		var taints []string
		for i := range n.Spec.Taints {
			if !f.pod.Tolerations.Admits(n.Spec.Taints[i:i+1], false) {
				taints = append(taints, n.Spec.Taints[i].ToString())
			}
		}
		return taints
	}) + " is not tolerated"
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
			parts = append(parts, fmt.Sprintf("the node selector wants %s=%s, %s", key, spec.NodeSelector[key], text))
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
	text := "the required node affinity wants " + strings.Join(terms, ", or ")
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
		}
	}
	return text
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

package why

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/interpodaffinity"
)

// podAffinityText names the term, and a pod that it is about.
func (f *facts) podAffinityText(b *Blocker, node string) string {
	var parts []string
	t := f.cluster.Machine.Table()
	for _, reason := range b.Reasons {
		switch reason {
		case interpodaffinity.ReasonExistingAntiAffinity:
			if pl, term := f.keeper(node); pl != nil {
				reason = fmt.Sprintf("pod %s on %s keeps pods like this one away (its anti-affinity by %s)", pl.Key(), t.Name(t.Pod(pl.UID).Row), term)
			}
		case interpodaffinity.ReasonAntiAffinity:
			for _, term := range podTerms(f.api, true) {
				text := fmt.Sprintf("its anti-affinity forbids %s in the same %s", selectorText(term.LabelSelector), term.TopologyKey)
				if who := f.matching(&term, node); who != "" {
					text += ", and " + who + " is there"
				}
				parts = append(parts, text)
			}
			continue
		default:
			for _, term := range podTerms(f.api, false) {
				parts = append(parts, fmt.Sprintf("its affinity wants a pod with %s in the same %s", selectorText(term.LabelSelector), term.TopologyKey))
			}
			continue
		}
		parts = append(parts, reason)
	}
	return strings.Join(parts, "; ")
}

func podTerms(p *v1.Pod, anti bool) []v1.PodAffinityTerm {
	switch a := p.Spec.Affinity; {
	case a == nil:
	case anti && a.PodAntiAffinity != nil:
		return a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	case !anti && a.PodAffinity != nil:
		return a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// selectorText is what a selector asks for, as kubectl writes it.
func selectorText(l *metav1.LabelSelector) string {
	text := metav1.FormatLabelSelector(l)
	if text == "<none>" {
		return "any labels"
	}
	return text
}

// matching is a pod in the node's domain that a term of the pod is about.
func (f *facts) matching(term *v1.PodAffinityTerm, node string) string {
	selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
	if err != nil {
		return ""
	}
	return f.inDomain(term.TopologyKey, node, func(p *object.Pod) bool {
		in := p.Namespace == f.pod.Namespace
		if len(term.Namespaces) > 0 || term.NamespaceSelector != nil {
			in = term.NamespaceSelector != nil || slices.Contains(term.Namespaces, p.Namespace)
		}
		return in && selector.Matches(labels.Set(p.Labels))
	})
}

// inDomain is the first pod, by name, of the node's domain that is meant.
func (f *facts) inDomain(key, node string, is func(*object.Pod) bool) (first string) {
	t := f.cluster.Machine.Table()
	at := f.node(node)
	if at == nil {
		return ""
	}
	for _, r := range t.All() {
		n := t.Node(r)
		if n == nil || n.Labels[key] != at.Labels[key] {
			continue
		}
		for _, pl := range t.Pods(r) {
			if is(pl.Pod) && (first == "" || pl.Pod.Key() < first) {
				first = pl.Pod.Key()
			}
		}
	}
	return first
}

// keeper is a pod whose own anti-affinity keeps the pod off the node.
func (f *facts) keeper(node string) (keeper *object.Pod, topology string) {
	t := f.cluster.Machine.Table()
	at := f.node(node)
	for _, r := range t.All() {
		n := t.Node(r)
		if n == nil || at == nil {
			continue
		}
		for _, pl := range t.Pods(r) {
			if pl.Pod.Affinity == nil || keeper != nil && compareKeys(keeper, pl.Pod) <= 0 {
				continue
			}
			for i := range pl.Pod.Affinity.AntiAffinity {
				term := &pl.Pod.Affinity.AntiAffinity[i]
				value, has := n.Labels[term.TopologyKey]
				if has && at.Labels[term.TopologyKey] == value && term.Matches(f.pod.Namespace, t.NamespaceLabels(f.pod.Namespace), f.pod.Labels) {
					keeper, topology = pl.Pod, term.TopologyKey
				}
			}
		}
	}
	return keeper, topology
}

// spreadText says how many pods are where.
func (f *facts) spreadText(b *Blocker, node string) string {
	var parts []string
	for _, c := range f.api.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != v1.DoNotSchedule {
			continue
		}
		n := f.node(node)
		value, has := "", false
		if n != nil {
			value, has = n.Labels[c.TopologyKey]
		}
		if !has {
			parts = append(parts, "nodes have no label "+c.TopologyKey+", by which pods are to be spread")
			continue
		}
		counts := f.spreadCounts(&c)
		fewest := value
		for _, v := range slices.Sorted(maps.Keys(counts)) {
			if counts[v] < counts[fewest] {
				fewest = v
			}
		}
		parts = append(parts, fmt.Sprintf("spread by %s allows maxSkew %d; matching pods: %s has %d, %s has %d", c.TopologyKey, c.MaxSkew, value, counts[value], fewest, counts[fewest]))
	}
	if len(parts) == 0 {
		return strings.Join(b.Reasons, ", ")
	}
	return strings.Join(parts, "; ")
}

// spreadCounts counts the pods that the constraint is about by domain.
func (f *facts) spreadCounts(c *v1.TopologySpreadConstraint) map[string]int {
	counts := map[string]int{}
	selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
	if err != nil {
		return counts
	}
	t := f.cluster.Machine.Table()
	for _, r := range t.All() {
		n := t.Node(r)
		if n == nil {
			continue
		}
		value, has := n.Labels[c.TopologyKey]
		if !has || f.pod.RequiredNodes != nil && !f.pod.RequiredNodes.Matches(n.Subject()) {
			continue
		}
		counts[value] += 0
		for _, pl := range t.Pods(r) {
			if pl.Pod.Namespace == f.pod.Namespace && !pl.Pod.Terminating && selector.Matches(labels.Set(pl.Pod.Labels)) {
				counts[value]++
			}
		}
	}
	return counts
}

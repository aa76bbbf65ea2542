package why

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/interpodaffinity"
)

// podAffinityText names the terms that keep the pod off some of the nodes, and a pod
// that each is about.
func (f *facts) podAffinityText(b *Blocker, nodes []string) string {
	var parts []string
	for _, reason := range b.Reasons {
		var texts []string
		switch reason {
		case interpodaffinity.ReasonExistingAntiAffinity:
			if p, on, key := f.keeper(nodes[0]); p != nil {
				where := " on " + on
				if f.cluster.isNominated(p) {
					where = ", which is nominated to " + on + ","
				}
				texts = []string{fmt.Sprintf("pod %s%s keeps pods like this one away (its anti-affinity by %s)", p.Key(), where, key)}
			}
		case interpodaffinity.ReasonAntiAffinity:
			texts = f.antiAffinityTexts(nodes)
		case interpodaffinity.ReasonAffinity:
			texts = f.affinityTexts(nodes)
		}
		if len(texts) == 0 {
			texts = []string{reason}
		}
		parts = append(parts, texts...)
	}
	return strings.Join(parts, "; ")
}

func (f *facts) antiAffinityTexts(nodes []string) (texts []string) {
	domains := f.forbidden()
	for i, term := range podTerms(f.api, true) {
		for _, name := range nodes {
			if p := f.podAt(domains[i], name, term.TopologyKey); p != nil {
				where := "there"
				if f.cluster.isNominated(p) {
					where = "nominated to " + f.cluster.Machine.Nominator().NominatedNode(p.UID)
				}
				texts = append(texts, fmt.Sprintf("its anti-affinity forbids %s in the same %s, and %s is %s", selectorText(term.LabelSelector), term.TopologyKey, p.Key(), where))
				break
			}
		}
	}
	return texts
}

// antiAffinityKeys returns the topology keys of the pod's anti-affinity that keep it off the
// node, where it has several terms.
func (f *facts) antiAffinityKeys(node string) (keys []string) {
	terms := podTerms(f.api, true)
	if len(terms) < 2 {
		return nil
	}
	for i, domains := range f.forbidden() {
		if f.podAt(domains, node, terms[i].TopologyKey) != nil {
			keys = append(keys, terms[i].TopologyKey)
		}
	}
	return keys
}

// forbidden is, for each term of the pod's anti-affinity, the first pod that it is about in
// each domain that has one. They are looked for once.
func (f *facts) forbidden() []map[string]*object.Pod {
	if f.anti == nil && f.pod.Affinity != nil {
		for i, term := range podTerms(f.api, true) {
			f.anti = append(f.anti, f.domains(term.TopologyKey, f.about(f.pod.Affinity.AntiAffinity[i:i+1])))
		}
	}
	return f.anti
}

// podAt is the pod of the node's domain.
func (f *facts) podAt(domains map[string]*object.Pod, node, key string) *object.Pod {
	value, has := f.label(node, key)
	if !has {
		return nil
	}
	return domains[value]
}

// isNominated reports whether the pod counts as placed because it is nominated to a node.
func (c *Cluster) isNominated(p *object.Pod) bool { return c.Machine.Table().Pod(p.UID) == nil }

// affinityTexts are about pods that all terms are about: others do not count.
func (f *facts) affinityTexts(nodes []string) (texts []string) {
	terms := podTerms(f.api, false)
	all := f.about(f.pod.Affinity.Affinity)
	for i, term := range terms {
		at := f.domains(term.TopologyKey, all)
		unmet, labelled := false, false
		for _, name := range nodes {
			value, has := f.label(name, term.TopologyKey)
			unmet = unmet || at[value] == nil
			labelled = labelled || has
		}
		text := fmt.Sprintf("its affinity wants a pod with %s in the same %s", selectorText(term.LabelSelector), term.TopologyKey)
		if !labelled {
			text += ", and nodes have no such label" + meantKey(term.TopologyKey, f.cluster.Set)
		}
		text += f.meantPod(&terms[i], &f.pod.Affinity.Affinity[i])
		if unmet || !labelled {
			texts = append(texts, text)
		}
	}
	if len(texts) > 0 {
		texts[len(texts)-1] += beside{f.cluster, f.pod}.text()
	}
	if len(terms) > 1 && len(texts) > 1 {
		texts = append(texts, "one pod has to meet all of these")
	}
	return texts
}

// about reports, for a pod, whether all of the terms match it.
func (f *facts) about(terms []match.PodTerm) func(*object.Pod) bool {
	t := f.cluster.Machine.Table()
	return func(p *object.Pod) bool {
		for i := range terms {
			if !terms[i].MatchesPlaced(p.Namespace, t.Namespaces().Labels(p.Namespace), p.Labels) {
				return false
			}
		}
		return true
	}
}

func (f *facts) label(node, key string) (value string, has bool) {
	if n := f.node(node); n != nil {
		value, has = n.Labels[key]
	}
	return value, has
}

// domains is the first pod, by name, that is meant in each domain that has one.
func (f *facts) domains(key string, meant func(*object.Pod) bool) map[string]*object.Pod {
	first := map[string]*object.Pod{}
	t := f.cluster.Machine.Table()
	for _, r := range t.All() {
		n := t.Node(r)
		if n == nil {
			continue
		}
		value, has := n.Labels[key]
		if !has {
			continue
		}
		for _, p := range f.on(n.Name) {
			if meant(p) && (first[value] == nil || compareKeys(p, first[value]) < 0) {
				first[value] = p
			}
		}
	}
	return first
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

// keeper is a pod whose own anti-affinity keeps the pod off the node, and where it is.
func (f *facts) keeper(node string) (keeper *object.Pod, on, topology string) {
	t := f.cluster.Machine.Table()
	at := f.node(node)
	for _, r := range t.All() {
		n := t.Node(r)
		if n == nil || at == nil {
			continue
		}
		for _, p := range f.on(n.Name) {
			if p.Affinity == nil || keeper != nil && compareKeys(keeper, p) <= 0 {
				continue
			}
			for i := range p.Affinity.AntiAffinity {
				term := &p.Affinity.AntiAffinity[i]
				value, has := n.Labels[term.TopologyKey]
				if has && at.Labels[term.TopologyKey] == value && term.MatchesPending(f.pod.Namespace, t.Namespaces().Labels(f.pod.Namespace), f.pod.Labels) {
					keeper, on, topology = p, n.Name, term.TopologyKey
				}
			}
		}
	}
	return keeper, on, topology
}

package why

import (
	"cmp"
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
			if p, on, key, others := f.keeper(nodes); p != nil {
				where := " on " + on
				if f.cluster.isNominated(p) {
					where = ", which is nominated to " + on + ","
				}
				text := fmt.Sprintf("pod %s%s keeps pods like this one away (its anti-affinity by %s)", p.Key(), where, key)
				switch {
				case others == 1:
					text += ", as does 1 other pod"
				case others > 1:
					text += fmt.Sprintf(", as do %d other pods", others)
				}
				texts = []string{text}
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
	forbidden := f.forbidden()
	for i, term := range podTerms(f.api, true) {
		var example *object.Pod
		at := map[string]domain{} // those of the nodes
		for _, name := range nodes {
			value, has := f.label(name, term.TopologyKey)
			if of := forbidden[i][value]; has && of.first != nil {
				example = cmp.Or(example, of.first)
				at[value] = of
			}
		}
		if example == nil {
			continue
		}
		nominated := ""
		if f.cluster.isNominated(example) {
			nominated = f.cluster.Machine.Nominator().NominatedNode(example.UID)
		}
		if len(at) > 1 { // nobody is to think that the other domains have none
			at = forbidden[i]
		}
		there := thereText(example.Key(), nominated, at, len(forbidden[i]))
		texts = append(texts, fmt.Sprintf("its anti-affinity forbids %s in the same %s, and %s", selectorText(term.LabelSelector), term.TopologyKey, there))
	}
	return texts
}

// thereText says where the pods are that a term forbids: so many in so many of all domains, the
// example among them. nominated is "" if the example has a node.
func thereText(example, nominated string, at map[string]domain, all int) string {
	pods, closed := 0, 0
	for _, of := range at {
		pods += of.pods
		if of.first != nil {
			closed++
		}
	}
	if nominated != "" {
		nominated = "nominated to " + nominated
	}
	if pods == 1 {
		return example + " is " + cmp.Or(nominated, "there")
	}
	where := fmt.Sprintf("in %d of %d domains", closed, all)
	switch closed {
	case 1:
		where = "there"
	case all:
		where = fmt.Sprintf("in all %d domains", all)
	}
	if nominated != "" {
		example += ", " + nominated
	}
	return fmt.Sprintf("%d such pods are %s, e.g. %s", pods, where, example)
}

// antiAffinityKeys returns the topology keys of the pod's anti-affinity that keep it off the
// node, where it has several terms.
func (f *facts) antiAffinityKeys(node string) (keys []string) {
	terms := podTerms(f.api, true)
	if len(terms) < 2 {
		return nil
	}
	for i, domains := range f.forbidden() {
		if value, has := f.label(node, terms[i].TopologyKey); has && domains[value].first != nil {
			keys = append(keys, terms[i].TopologyKey)
		}
	}
	return keys
}

// domain counts the pods of a topology domain that terms match.
type domain struct {
	first *object.Pod // by name; nil if there is none
	pods  int
}

// forbidden returns, for each term of the pod's anti-affinity, the domains with the pods that
// it is about. They are looked for once.
func (f *facts) forbidden() []map[string]domain {
	if f.anti == nil && f.pod.Affinity != nil {
		for i, term := range podTerms(f.api, true) {
			f.anti = append(f.anti, f.domains(term.TopologyKey, f.about(f.pod.Affinity.AntiAffinity[i:i+1])))
		}
	}
	return f.anti
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
			unmet = unmet || at[value].first == nil
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

// domains returns the domains of the key by the label's value, with the pods that are meant.
func (f *facts) domains(key string, meant func(*object.Pod) bool) map[string]domain {
	domains := map[string]domain{}
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
		of := domains[value]
		for _, p := range f.on(n.Name) {
			if !meant(p) {
				continue
			}
			of.pods++
			if of.first == nil || compareKeys(p, of.first) < 0 {
				of.first = p
			}
		}
		domains[value] = of
	}
	return domains
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

// keeper returns the first pod, by name, whose own anti-affinity keeps the pod off some of the
// nodes, the node it is on, the term's topology key, and how many other pods do so.
func (f *facts) keeper(nodes []string) (keeper *object.Pod, on, topology string, others int) {
	t := f.cluster.Machine.Table()
	values := map[string]map[string]bool{}
	for _, r := range t.All() {
		n := t.Node(r)
		if n == nil {
			continue
		}
		for _, p := range f.on(n.Name) {
			key, keeps := f.keepsOff(p, n.Labels, nodes, values)
			switch {
			case !keeps:
				continue
			case keeper != nil:
				others++
			}
			if keeper == nil || compareKeys(p, keeper) < 0 {
				keeper, on, topology = p, n.Name, key
			}
		}
	}
	return keeper, on, topology, others
}

// keepsOff returns the topology key by which the anti-affinity of p, on a node with the labels,
// keeps the pod off some of the nodes. It keeps the values that the nodes have for each key.
func (f *facts) keepsOff(p *object.Pod, labels map[string]string, nodes []string, values map[string]map[string]bool) (key string, keeps bool) {
	if p.Affinity == nil {
		return "", false
	}
	namespace := f.cluster.Machine.Table().Namespaces().Labels(f.pod.Namespace)
	for i := range p.Affinity.AntiAffinity {
		term := &p.Affinity.AntiAffinity[i]
		value, has := labels[term.TopologyKey]
		if !has || !term.MatchesPending(f.pod.Namespace, namespace, f.pod.Labels) {
			continue
		}
		if values[term.TopologyKey] == nil {
			values[term.TopologyKey] = map[string]bool{}
			for _, name := range nodes {
				if at, has := f.label(name, term.TopologyKey); has {
					values[term.TopologyKey][at] = true
				}
			}
		}
		if values[term.TopologyKey][value] {
			return term.TopologyKey, true
		}
	}
	return "", false
}

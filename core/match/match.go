package match

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Subject is the part of a node that a node selector or node affinity reads.
type Subject struct {
	Name   string // metadata.name, for matchFields
	Labels labels.Set
}

// NodeSelector is what a pod requires of its node: a label set (spec.nodeSelector), and
// terms of which one must match (required node affinity). A nil *NodeSelector matches every
// node.
type NodeSelector struct {
	// Key identifies the content: selectors with equal keys match the same nodes.
	Key string

	labels  []label // the label set, sorted by key
	demands bool    // node affinity is required: if none of terms is valid, no node matches
	terms   []term
	names   []string // see Names
	pinned  bool     // Names returns true
}

// label is a label that a node must have.
type label struct{ key, value string }

// NewNodeSelector compiles spec.nodeSelector and required node affinity. It returns nil when
// the pod has neither. A term that is empty or does not parse matches no node, as in
// kube-scheduler.
func NewNodeSelector(set map[string]string, required *v1.NodeSelector) *NodeSelector {
	if len(set) == 0 && required == nil {
		return nil
	}
	s := &NodeSelector{labels: sortedLabels(set)}
	if required != nil {
		s.demands = true
		s.names, s.pinned = pins(required.NodeSelectorTerms)
		for i := range required.NodeSelectorTerms {
			if t := &required.NodeSelectorTerms[i]; !empty(t) {
				s.terms = append(s.terms, compile(t))
			}
		}
	}
	s.Key = selectorKey(s.labels, required)
	return s
}

// Demands returns the label requirements of each term of required node affinity that parses. It
// leaves out field requirements, and the label set, which a node must meet as well. The caller
// owns the slices.
func (s *NodeSelector) Demands() (terms [][]v1.NodeSelectorRequirement) {
	if s == nil {
		return nil
	}
	for i := range s.terms {
		if !s.terms[i].valid {
			continue
		}
		var demands []v1.NodeSelectorRequirement
		for _, r := range s.terms[i].labels {
			demands = append(demands, v1.NodeSelectorRequirement{Key: r.key, Operator: r.op, Values: r.values})
		}
		terms = append(terms, demands)
	}
	return terms
}

// sortedLabels returns the labels of the set, sorted by key.
func sortedLabels(set map[string]string) []label {
	if len(set) == 0 {
		return nil
	}
	list := make([]label, 0, len(set))
	for k, v := range set { // any order: sorted below
		list = append(list, label{k, v})
	}
	slices.SortFunc(list, func(a, b label) int {
		if a.key < b.key {
			return -1
		}
		return 1 // keys of a map differ
	})
	return list
}

// Matches reports whether the node meets the label set and one of the terms, if there are
// terms.
func (s *NodeSelector) Matches(n Subject) bool {
	if s == nil {
		return true
	}
	for i := range s.labels {
		if got, ok := n.Labels[s.labels[i].key]; !ok || got != s.labels[i].value {
			return false
		}
	}
	if !s.demands {
		return true
	}
	for i := range s.terms {
		if s.terms[i].holds(n) {
			return true
		}
	}
	return false
}

// Names returns the only nodes that can match, sorted, if every term has an In requirement on
// metadata.name; ok is false otherwise. An empty list with ok means that the names in each term
// contradict each other.
func (s *NodeSelector) Names() (names []string, ok bool) {
	if s == nil {
		return nil, false
	}
	return s.names, s.pinned
}

// pins returns the nodes that the terms name by metadata.name, sorted. ok is false if there are
// no terms, or if one has no In requirement on metadata.name. A term names the nodes that all
// its requirements on metadata.name have in common. These may be none. As in kube-scheduler's
// PreFilter of NodeAffinity, terms that do not parse count, too.
func pins(terms []v1.NodeSelectorTerm) (names []string, ok bool) {
	for i := range terms {
		named, ok := termPins(&terms[i])
		if !ok {
			return nil, false
		}
		names = append(names, named...)
	}
	slices.Sort(names)
	return slices.Compact(names), len(terms) > 0
}

// termPins returns the nodes that all In requirements of the term on metadata.name have in
// common; false if it has no such requirement.
func termPins(t *v1.NodeSelectorTerm) (names []string, ok bool) {
	for _, f := range t.MatchFields {
		switch {
		case f.Key != nameField || f.Operator != v1.NodeSelectorOpIn:
		case !ok:
			names, ok = slices.Clone(f.Values), true
		default:
			names = slices.DeleteFunc(names, func(n string) bool { return !slices.Contains(f.Values, n) })
		}
	}
	return names, ok
}

// PreferredNodes are the weighted terms of preferred node affinity. A nil *PreferredNodes
// gives every node the score 0.
type PreferredNodes struct {
	// Key identifies the content: values with equal keys give every node the same score.
	Key string
	// Invalid is the error of terms that do not parse, nil if all parse. kube-scheduler
	// fails the scoring of a pod with such terms.
	Invalid error
	terms   []weighted
}

// weighted is a preferred node affinity term with its weight, which a node that matches
// adds to its score.
type weighted struct {
	term
	weight int64
}

// NewPreferredNodes compiles the terms of preferred node affinity. It returns nil if there
// are none. Terms with weight 0 or without requirements are left out.
func NewPreferredNodes(terms []v1.PreferredSchedulingTerm) *PreferredNodes {
	var p *PreferredNodes
	var key []byte
	valid := true
	for i := range terms {
		t := &terms[i]
		if t.Weight == 0 || empty(&t.Preference) {
			continue
		}
		if p == nil {
			p = &PreferredNodes{}
			key = append(key, '~') // no NodeSelector's key starts so
		}
		c := weighted{compile(&t.Preference), int64(t.Weight)}
		valid = valid && c.valid
		p.terms = append(p.terms, c)
		key = appendNumber(key, c.weight)
		key = appendTerm(key, &t.Preference)
	}
	if p == nil {
		return nil
	}
	p.Key = string(key)
	if !valid {
		_, p.Invalid = nodeaffinity.NewPreferredSchedulingTerms(terms) // in the words that users search for
	}
	return p
}

// Score returns the sum of the weights of the terms that match the node. A term that does not
// parse matches none.
func (p *PreferredNodes) Score(n Subject) int64 {
	if p == nil {
		return 0
	}
	var sum int64
	for i := range p.terms {
		if p.terms[i].holds(n) {
			sum += p.terms[i].weight
		}
	}
	return sum
}

// OneOf returns the label key and values if the selector is one term with one requirement, that
// a label is In the values, and no label set (spec.nodeSelector); else false.
func (s *NodeSelector) OneOf() (key string, values []string, ok bool) {
	if s == nil || len(s.labels) > 0 || len(s.terms) != 1 {
		return "", nil, false
	}
	t := &s.terms[0]
	if !t.valid || len(t.fields) > 0 || len(t.labels) != 1 || t.labels[0].op != v1.NodeSelectorOpIn {
		return "", nil, false
	}
	return t.labels[0].key, t.labels[0].values, true
}

package match

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Subject is what a node selector looks at.
type Subject struct {
	Name   string // metadata.name, for matchFields
	Labels labels.Set
}

// NodeSelector is a hard demand on a node: a label set (spec.nodeSelector)
// and terms of which one must hold (required node affinity). A nil
// *NodeSelector admits every node.
type NodeSelector struct {
	// Key is equal for selectors that admit the same nodes by construction.
	Key string

	labels  map[string]string
	demands bool // terms are given: without a valid one nothing matches
	terms   []term
}

// term holds when all of its parts hold. A term that does not parse holds
// nowhere, as in kube-scheduler.
type term struct {
	labels  labels.Requirements
	fields  []fieldRequirement
	invalid error
}

// fieldRequirement compares the one field that a node selector knows,
// metadata.name.
type fieldRequirement struct {
	key, value string
	equal      bool
}

// NewNodeSelector compiles spec.nodeSelector and required node affinity; nil
// when the pod demands nothing.
func NewNodeSelector(set map[string]string, required *v1.NodeSelector) *NodeSelector {
	if len(set) == 0 && required == nil {
		return nil
	}
	s := &NodeSelector{labels: set}
	if required != nil {
		s.demands = true
		for i := range required.NodeSelectorTerms {
			if t := &required.NodeSelectorTerms[i]; !empty(t) {
				s.terms = append(s.terms, compile(t))
			}
		}
	}
	s.Key = key(set, required)
	return s
}

// Matches tells whether the node meets the demand.
func (s *NodeSelector) Matches(n Subject) bool {
	if s == nil {
		return true
	}
	for k, v := range s.labels {
		if got, ok := n.Labels[k]; !ok || got != v {
			return false
		}
	}
	if !s.demands {
		return true
	}
	return slices.ContainsFunc(s.terms, func(t term) bool { return t.holds(n) })
}

// PreferredNodes is a soft demand: weighted terms. A nil *PreferredNodes
// prefers nothing.
type PreferredNodes struct {
	Key string
	// Invalid is the first term's parse error, nil when all terms parse.
	Invalid error
	terms   []weighted
}

type weighted struct {
	term
	weight int64
}

// NewPreferredNodes compiles preferred scheduling terms; nil when there are
// none. Terms without weight or content are left out.
func NewPreferredNodes(terms []v1.PreferredSchedulingTerm) *PreferredNodes {
	if len(terms) == 0 {
		return nil
	}
	p := &PreferredNodes{}
	var b strings.Builder
	for i := range terms {
		t := &terms[i]
		if t.Weight == 0 || empty(&t.Preference) {
			continue
		}
		c := compile(&t.Preference)
		if c.invalid != nil && p.Invalid == nil {
			p.Invalid = c.invalid
		}
		p.terms = append(p.terms, weighted{c, int64(t.Weight)})
		fmt.Fprintf(&b, "%d:", t.Weight)
		writeTerm(&b, &t.Preference)
	}
	p.Key = b.String()
	return p
}

// Score is the sum of the weights of the terms that hold on the node.
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

func empty(t *v1.NodeSelectorTerm) bool {
	return len(t.MatchExpressions) == 0 && len(t.MatchFields) == 0
}

func compile(in *v1.NodeSelectorTerm) term {
	var t term
	for _, e := range in.MatchExpressions {
		r, err := requirement(e)
		if err != nil {
			t.invalid = err
			return t
		}
		t.labels = append(t.labels, *r)
	}
	for _, e := range in.MatchFields {
		f, err := field(e)
		if err != nil {
			t.invalid = err
			return t
		}
		t.fields = append(t.fields, f)
	}
	return t
}

var operators = map[v1.NodeSelectorOperator]selection.Operator{
	v1.NodeSelectorOpIn:           selection.In,
	v1.NodeSelectorOpNotIn:        selection.NotIn,
	v1.NodeSelectorOpExists:       selection.Exists,
	v1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	v1.NodeSelectorOpGt:           selection.GreaterThan,
	v1.NodeSelectorOpLt:           selection.LessThan,
}

func requirement(e v1.NodeSelectorRequirement) (*labels.Requirement, error) {
	op, ok := operators[e.Operator]
	if !ok {
		return nil, fmt.Errorf("node selector key %q: operator %q is not known", e.Key, e.Operator)
	}
	return labels.NewRequirement(e.Key, op, e.Values)
}

func field(e v1.NodeSelectorRequirement) (fieldRequirement, error) {
	if e.Operator != v1.NodeSelectorOpIn && e.Operator != v1.NodeSelectorOpNotIn {
		return fieldRequirement{}, fmt.Errorf("node field %q: operator %q is not known", e.Key, e.Operator)
	}
	if len(e.Values) != 1 {
		return fieldRequirement{}, fmt.Errorf("node field %q: needs exactly one value, has %d", e.Key, len(e.Values))
	}
	return fieldRequirement{e.Key, e.Values[0], e.Operator == v1.NodeSelectorOpIn}, nil
}

func (t *term) holds(n Subject) bool {
	if t.invalid != nil {
		return false
	}
	for i := range t.labels {
		if !t.labels[i].Matches(n.Labels) {
			return false
		}
	}
	for _, f := range t.fields {
		value := ""
		if f.key == "metadata.name" {
			value = n.Name
		}
		if n.Name != "" && (value == f.value) != f.equal {
			return false
		}
	}
	return true
}

func key(set map[string]string, required *v1.NodeSelector) string {
	var b strings.Builder
	keys := make([]string, 0, len(set))
	for k := range set {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		fmt.Fprintf(&b, "%q=%q,", k, set[k])
	}
	if required != nil {
		b.WriteByte('|')
		for i := range required.NodeSelectorTerms {
			writeTerm(&b, &required.NodeSelectorTerms[i])
		}
	}
	return b.String()
}

func writeTerm(b *strings.Builder, t *v1.NodeSelectorTerm) {
	for _, e := range t.MatchExpressions {
		fmt.Fprintf(b, "l%q%s%q,", e.Key, e.Operator, e.Values)
	}
	for _, e := range t.MatchFields {
		fmt.Fprintf(b, "f%q%s%q,", e.Key, e.Operator, e.Values)
	}
	b.WriteByte(';')
}

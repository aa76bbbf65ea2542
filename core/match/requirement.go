package match

import v1 "k8s.io/api/core/v1"

// Requirement is what a part of a selector requires of a node: of a label, or of its
// name.
type Requirement struct {
	requirement
	field bool
}

// Clauses returns the requirements of the selector. It admits the nodes that meet all of
// the first list and, if demands is set, all of one of the other lists. A nil selector
// has none.
func (s *NodeSelector) Clauses() (all []Requirement, others [][]Requirement, demands bool) {
	if s == nil {
		return nil, nil, false
	}
	for _, l := range s.labels {
		all = append(all, Requirement{requirement: requirement{key: l.key, op: v1.NodeSelectorOpIn, values: []string{l.value}}})
	}
	for i := range s.terms {
		if s.terms[i].valid {
			others = append(others, s.terms[i].requirements())
		}
	}
	return all, others, s.demands
}

// Clauses returns for each term its weight, and the requirements that a node has to meet
// for it to count.
func (p *PreferredNodes) Clauses() (weights []int64, terms [][]Requirement) {
	if p == nil {
		return nil, nil
	}
	for i := range p.terms {
		if p.terms[i].valid {
			weights, terms = append(weights, p.terms[i].weight), append(terms, p.terms[i].requirements())
		}
	}
	return weights, terms
}

func (t *term) requirements() []Requirement {
	list := make([]Requirement, 0, len(t.labels)+len(t.fields))
	for _, r := range t.labels {
		list = append(list, Requirement{requirement: r})
	}
	for _, r := range t.fields {
		list = append(list, Requirement{requirement: r, field: true})
	}
	return list
}

// Names returns the node names that the requirement lists. among is true if the node must
// have one of them, false if it must have none. of is false if the requirement is not
// about node names.
func (r *Requirement) Names() (names []string, among, of bool) {
	among = r.op == v1.NodeSelectorOpIn
	of = r.field && r.key == nameField && (among || r.op == v1.NodeSelectorOpNotIn)
	return r.values, among, of
}

// Label returns the label that the requirement is about; false where it is about something else.
func (r *Requirement) Label() (key string, of bool) { return r.key, !r.field }

// Accepts reports whether a node meets the requirement whose label has the value, or,
// with exists false, that lacks the label.
func (r *Requirement) Accepts(value string, exists bool) bool { return r.holds(value, exists) }

// MetBy reports whether the node meets the requirement.
func (r *Requirement) MetBy(n Subject) bool {
	if r.field {
		return r.holdsOfField(n)
	}
	value, ok := n.Labels[r.key]
	return r.holds(value, ok)
}

// AppendKey appends what is equal for requirements that the same nodes meet by
// construction.
func (r *Requirement) AppendKey(b []byte) []byte {
	kind := byte('l')
	if r.field {
		kind = 'f'
	}
	return appendRequirement(b, kind, &v1.NodeSelectorRequirement{Key: r.key, Operator: r.op, Values: r.values})
}

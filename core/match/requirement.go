package match

import v1 "k8s.io/api/core/v1"

// Requirement is one requirement of a node selector: on a label, or on a field
// (metadata.name).
type Requirement struct {
	requirement
	field bool // it is on a field
}

// Clauses returns the requirements of the selector. It matches the nodes that meet all of the
// first list and, if demands is set, all of at least one of the other lists. Terms that do not
// parse are left out of others. A nil selector has no requirements.
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

// Clauses returns the weight of each term that parses, and the requirements that a node
// must meet for the term to match.
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

// requirements returns the requirements of the term on labels, then on fields.
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

// Label returns the label key of the requirement; of is false if it is on a field.
func (r *Requirement) Label() (key string, of bool) { return r.key, !r.field }

// Accepts reports whether the requirement is met by a node whose label has the value or, if
// exists is false, by one that lacks the label.
func (r *Requirement) Accepts(value string, exists bool) bool { return r.holds(value, exists) }

// MetBy reports whether the node meets the requirement.
func (r *Requirement) MetBy(n Subject) bool {
	if r.field {
		return r.holdsOfField(n)
	}
	value, ok := n.Labels[r.key]
	return r.holds(value, ok)
}

// AppendKey appends a key that is equal for equal requirements.
func (r *Requirement) AppendKey(b []byte) []byte {
	kind := byte('l')
	if r.field {
		kind = 'f'
	}
	return appendRequirement(b, kind, &v1.NodeSelectorRequirement{Key: r.key, Operator: r.op, Values: r.values})
}

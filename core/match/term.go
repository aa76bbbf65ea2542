package match

import (
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// nameField is the only field that node selectors support.
const nameField = metav1.ObjectNameField

// term is a compiled node selector term. A node matches if it meets all of the
// requirements. If the term does not parse, valid is false, and it matches no node.
type term struct {
	valid  bool
	labels []requirement
	fields []requirement
}

// requirement compares one label or field with values.
type requirement struct {
	key    string
	op     v1.NodeSelectorOperator
	values []string
	sorted []string // the values, if there are more than manyValues; else nil
	bound  int64    // the value for the operators Gt and Lt
}

// manyValues is the most values of a requirement that are searched one by one; more are
// sorted.
const manyValues = 16

// has reports whether value is one of the requirement's values.
func (r *requirement) has(value string) bool {
	if r.sorted == nil {
		return slices.Contains(r.values, value)
	}
	_, found := slices.BinarySearch(r.sorted, value)
	return found
}

// empty reports whether the term has no requirements.
func empty(t *v1.NodeSelectorTerm) bool {
	return len(t.MatchExpressions) == 0 && len(t.MatchFields) == 0
}

// compile compiles a node selector term. It is not valid if a requirement does not parse.
func compile(in *v1.NodeSelectorTerm) term {
	t := term{valid: true}
	for i := range in.MatchExpressions {
		r, ok := compileLabel(&in.MatchExpressions[i])
		t.valid = t.valid && ok
		t.labels = append(t.labels, r)
	}
	for i := range in.MatchFields {
		r, ok := compileField(&in.MatchFields[i])
		t.valid = t.valid && ok
		t.fields = append(t.fields, r)
	}
	return t
}

// operators maps the operators of node selectors to those of label selectors, by whose
// rules a requirement is checked.
var operators = map[v1.NodeSelectorOperator]selection.Operator{
	v1.NodeSelectorOpIn:           selection.In,
	v1.NodeSelectorOpNotIn:        selection.NotIn,
	v1.NodeSelectorOpExists:       selection.Exists,
	v1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	v1.NodeSelectorOpGt:           selection.GreaterThan,
	v1.NodeSelectorOpLt:           selection.LessThan,
}

// compileLabel compiles a requirement on a label. It returns false if labels.NewRequirement
// rejects it, or Gt or Lt has no integer.
func compileLabel(e *v1.NodeSelectorRequirement) (requirement, bool) {
	op, ok := operators[e.Operator]
	if !ok {
		return requirement{}, false
	}
	if _, err := labels.NewRequirement(e.Key, op, e.Values); err != nil {
		return requirement{}, false
	}
	r := requirement{key: e.Key, op: e.Operator, values: e.Values}
	if len(r.values) > manyValues {
		r.sorted = slices.Sorted(slices.Values(r.values))
	}
	if e.Operator == v1.NodeSelectorOpGt || e.Operator == v1.NodeSelectorOpLt {
		r.bound, ok = integer(e.Values[0])
	}
	return r, ok
}

// compileField compiles a requirement on a field. It returns false unless the operator is In or
// NotIn, with one value. Any field name will do.
func compileField(e *v1.NodeSelectorRequirement) (requirement, bool) {
	known := e.Operator == v1.NodeSelectorOpIn || e.Operator == v1.NodeSelectorOpNotIn
	return requirement{key: e.Key, op: e.Operator, values: e.Values}, known && len(e.Values) == 1
}

// holds reports whether the node meets all requirements of the term; false if the term does not
// parse.
func (t *term) holds(n Subject) bool {
	if !t.valid {
		return false
	}
	for i := range t.labels {
		r := &t.labels[i]
		if value, ok := n.Labels[r.key]; !r.holds(value, ok) {
			return false
		}
	}
	for i := range t.fields {
		if !t.fields[i].holdsOfField(n) {
			return false
		}
	}
	return true
}

// holdsOfField reports whether the node's field meets the requirement. Any field but
// metadata.name is "". A node without a name, of which nothing is known, always meets it.
func (r *requirement) holdsOfField(n Subject) bool {
	value := ""
	if r.key == nameField {
		value = n.Name
	}
	return n.Name == "" || r.holds(value, true)
}

// holds reports whether a value meets the requirement; exists is false if the label is missing.
// As in the API, a missing label meets NotIn and DoesNotExist. Gt and Lt need an integer value.
func (r *requirement) holds(value string, exists bool) bool {
	switch r.op {
	case v1.NodeSelectorOpIn:
		return exists && r.has(value)
	case v1.NodeSelectorOpNotIn:
		return !exists || !r.has(value)
	case v1.NodeSelectorOpExists:
		return exists
	case v1.NodeSelectorOpDoesNotExist:
		return !exists
	}
	number, ok := integer(value)
	if !exists || !ok {
		return false
	}
	if r.op == v1.NodeSelectorOpGt {
		return number > r.bound
	}
	return number < r.bound
}

// integer parses a decimal integer as strconv.ParseInt does; false if s is none. It allocates
// no error for other text, since most values are not numbers.
func integer(s string) (int64, bool) {
	digits := s
	if s != "" && (s[0] == '-' || s[0] == '+') {
		digits = s[1:]
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
	}
	if digits == "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

package match

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// AppendField appends s with its length in front to a key, so that no content can be taken
// for structure.
func AppendField(b []byte, s string) []byte {
	b = strconv.AppendInt(b, int64(len(s)), 10)
	b = append(b, ':')
	return append(b, s...)
}

// appendNumber appends n to a key, so that it cannot be taken for a field.
func appendNumber(b []byte, n int64) []byte {
	b = strconv.AppendInt(b, n, 10)
	return append(b, '*')
}

// selectorKey returns the Key of a NodeSelector: the label set and the terms of required,
// which may be nil.
func selectorKey(set []label, required *v1.NodeSelector) string {
	var b []byte
	for _, l := range set {
		b = AppendField(b, l.key)
		b = AppendField(b, l.value)
	}
	if required != nil {
		b = append(b, '|')
		for i := range required.NodeSelectorTerms {
			b = appendTerm(b, &required.NodeSelectorTerms[i])
		}
	}
	return string(b)
}

// appendTerm appends the requirements of a node selector term to a key.
func appendTerm(b []byte, t *v1.NodeSelectorTerm) []byte {
	for i := range t.MatchExpressions {
		b = appendRequirement(b, 'l', &t.MatchExpressions[i])
	}
	for i := range t.MatchFields {
		b = appendRequirement(b, 'f', &t.MatchFields[i])
	}
	return append(b, ';')
}

// appendRequirement appends one requirement of a node selector term to the selector's Key.
// kind is 'l' for labels, 'f' for fields.
func appendRequirement(b []byte, kind byte, e *v1.NodeSelectorRequirement) []byte {
	b = append(b, kind)
	b = AppendField(b, e.Key)
	b = AppendField(b, string(e.Operator))
	for _, v := range e.Values {
		b = AppendField(b, v)
	}
	return b
}

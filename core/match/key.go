package match

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// AppendField appends a field to a key. Its length goes first, so that no
// content can be taken for structure.
func AppendField(b []byte, s string) []byte {
	b = strconv.AppendInt(b, int64(len(s)), 10)
	b = append(b, ':')
	return append(b, s...)
}

func appendNumber(b []byte, n int64) []byte {
	b = strconv.AppendInt(b, n, 10)
	return append(b, '*')
}

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

func appendTerm(b []byte, t *v1.NodeSelectorTerm) []byte {
	for i := range t.MatchExpressions {
		b = appendRequirement(b, 'l', &t.MatchExpressions[i])
	}
	for i := range t.MatchFields {
		b = appendRequirement(b, 'f', &t.MatchFields[i])
	}
	return append(b, ';')
}

func appendRequirement(b []byte, kind byte, e *v1.NodeSelectorRequirement) []byte {
	b = append(b, kind)
	b = AppendField(b, e.Key)
	b = AppendField(b, string(e.Operator))
	for _, v := range e.Values {
		b = AppendField(b, v)
	}
	return b
}

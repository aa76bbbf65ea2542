package match

import (
	"cmp"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
)

// Tolerations are a pod's spec.tolerations. The zero value tolerates nothing.
type Tolerations struct {
	// Key identifies the list.
	Key string
	// List is sorted by key and effect if it is longer than manyTolerations.
	List []v1.Toleration
}

// manyTolerations is the most tolerations that are searched without sorting.
const manyTolerations = 16

// NewTolerations compiles the list, which it does not change.
func NewTolerations(list []v1.Toleration) Tolerations {
	if len(list) == 0 {
		return Tolerations{}
	}
	b := make([]byte, 0, 64*len(list))
	for i := range list {
		t := &list[i]
		b = AppendField(b, t.Key)
		b = AppendField(b, string(t.Operator))
		b = AppendField(b, t.Value)
		b = AppendField(b, string(t.Effect))
	}
	if len(list) > manyTolerations {
		list = slices.Clone(list) // it is the object's
		slices.SortFunc(list, func(a, b v1.Toleration) int { return compareToleration(&a, b.Key, b.Effect) })
	}
	return Tolerations{Key: string(b), List: list}
}

// compareToleration compares a toleration's key, then its effect, with the given ones, as
// cmp.Compare does. Long lists are sorted and searched by it.
func compareToleration(t *v1.Toleration, key string, effect v1.TaintEffect) int {
	return cmp.Or(cmp.Compare(t.Key, key), cmp.Compare(t.Effect, effect))
}

// Tolerates reports whether one of the tolerations tolerates the taint. comparisons is
// kube-scheduler's gate TaintTolerationComparisonOperators: without it the operators Lt and Gt
// tolerate nothing.
func (t Tolerations) Tolerates(taint *v1.Taint, comparisons bool) bool {
	if len(t.List) <= manyTolerations {
		for i := range t.List {
			if tolerates(&t.List[i], taint, comparisons) {
				return true
			}
		}
		return false
	}
	for _, key := range [...]string{"", taint.Key} {
		if t.tolerate(key, "", taint, comparisons) || t.tolerate(key, taint.Effect, taint, comparisons) {
			return true
		}
	}
	return false
}

// tolerate reports whether a toleration with exactly this key and effect tolerates the taint.
// The list must be sorted.
func (t Tolerations) tolerate(key string, effect v1.TaintEffect, taint *v1.Taint, comparisons bool) bool {
	at, _ := slices.BinarySearchFunc(t.List, key, func(t v1.Toleration, key string) int { return compareToleration(&t, key, effect) })
	for ; at < len(t.List); at++ {
		of := &t.List[at]
		if of.Key != key || of.Effect != effect {
			return false
		}
		if tolerates(of, taint, comparisons) {
			return true
		}
	}
	return false
}

// Admits reports whether the tolerations tolerate all taints with effect NoSchedule or
// NoExecute. comparisons is as in Tolerates.
func (t Tolerations) Admits(taints []v1.Taint, comparisons bool) bool {
	for i := range taints {
		hard := taints[i].Effect == v1.TaintEffectNoSchedule || taints[i].Effect == v1.TaintEffectNoExecute
		if hard && !t.Tolerates(&taints[i], comparisons) {
			return false
		}
	}
	return true
}

// tolerates reports whether one toleration tolerates the taint. An empty effect or key of the
// toleration stands for any, an empty operator for Equal.
func tolerates(t *v1.Toleration, taint *v1.Taint, comparisons bool) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case "", v1.TolerationOpEqual:
		return t.Value == taint.Value
	case v1.TolerationOpExists:
		return true
	case v1.TolerationOpLt, v1.TolerationOpGt:
		return comparisons && compare(t, taint)
	}
	return false
}

// compare reports whether the taint's value is less (Lt) or greater (Gt) than the
// toleration's. It is false if one of them is not a decimal integer as the API defines it.
func compare(t *v1.Toleration, taint *v1.Taint) bool {
	bound, ok := decimal(t.Value)
	value, ok2 := decimal(taint.Value)
	if !ok || !ok2 {
		return false
	}
	if t.Operator == v1.TolerationOpLt {
		return value < bound
	}
	return value > bound
}

// decimal parses a decimal integer in the form that the API allows; false if s is none.
func decimal(s string) (int64, bool) {
	if len(content.IsDecimalInteger(s)) > 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

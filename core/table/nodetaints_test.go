package table

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
)

// Lists of taints that differ in anything that counts have numbers of their own.
func TestTaintLists(t *testing.T) {
	tb := New()
	number := func(name string, taints ...v1.Taint) int32 {
		return tb.TaintList(tb.SetNode(&object.Node{Name: name, Taints: taints}))
	}
	taint := v1.Taint{Key: "k", Value: "v", Effect: v1.TaintEffectNoSchedule}
	key, value, effect := taint, taint, taint
	key.Key, value.Value, effect.Effect = "l", "w", v1.TaintEffectPreferNoSchedule
	seen := map[int32]bool{0: true}
	for i, list := range [][]v1.Taint{{taint}, {key}, {value}, {effect}, {taint, key}} {
		n := number(string(rune('a'+i)), list...)
		if seen[n] {
			t.Errorf("%v has the number of another list", list)
		}
		seen[n] = true
	}
	if number("z", taint) != number("a", taint) || number("y") != 0 {
		t.Error("equal lists have numbers of their own, or no taints have one")
	}
}

package nodetaints

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Taints that differ in anything that counts have numbers of their own.
func TestTaintNumbers(t *testing.T) {
	tb := table.New()
	set := func(name string, taints ...v1.Taint) Set {
		r := tb.SetNode(&object.Node{Name: name, Taints: taints})
		return Of(tb).Sets()[r]
	}
	taint := v1.Taint{Key: "k", Value: "v", Effect: v1.TaintEffectNoSchedule}
	key, value, effect := taint, taint, taint
	key.Key, value.Value, effect.Effect = "l", "w", v1.TaintEffectPreferNoSchedule
	seen := map[Set]bool{0: true}
	for i, list := range [][]v1.Taint{{taint}, {key}, {value}, {effect}, {taint, key}, {taint, taint}} {
		n := set(string(rune('a'+i)), list...)
		if seen[n] {
			t.Errorf("%v are the taints of another list", list)
		}
		seen[n] = true
	}
	if set("z", taint) != set("a", taint) || set("y") != 0 {
		t.Error("equal taints have numbers of their own, or a node without any has some")
	}
}

// There are as many numbers as fit. One that no node has any more is given again.
func TestTaintsWithoutANumber(t *testing.T) {
	tb := table.New()
	set := func(name string, taints ...int) Set {
		n := &object.Node{Name: name}
		for _, taint := range taints {
			n.Taints = append(n.Taints, v1.Taint{Key: fmt.Sprint(taint), Effect: v1.TaintEffectNoSchedule})
		}
		r := tb.SetNode(n)
		if err := tb.Check(); err != nil {
			t.Fatal(err)
		}
		return Of(tb).Sets()[r]
	}
	for i := range mostTaints {
		set(fmt.Sprint("node ", i), i)
	}
	if set("more", 0, mostTaints) != Others|1 || len(Of(tb).Numbered()) != mostTaints {
		t.Errorf("%d taints have numbers", len(Of(tb).Numbered()))
	}
	tb.RemoveNode("node 1")
	revision := Of(tb).Revision()
	if set("more", 1) != 2 || Of(tb).Revision() != revision+1 { // no node has others any more
		t.Error("a taint that comes back has another number")
	}
	tb.RemoveNode("more")
	if set("more", 1, mostTaints) != Others|2 {
		t.Error("a node has a taint without a number, and no others")
	}
	tb.RemoveNode("more")
	if set("more", mostTaints) != 2 {
		t.Error("the number that nobody has is not given")
	}
}

package interpodaffinity

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/match"
)

// Each set that selects pods with some labels is found once, also where its selector lists
// a value twice, or where many sets ask for one value.
func TestTermIndex(t *testing.T) {
	in := func(values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values}
	}
	exists := metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpExists}
	other := metav1.LabelSelectorRequirement{Key: "zone", Operator: metav1.LabelSelectorOpExists}
	var terms []v1.PodAffinityTerm
	for _, e := range [][]metav1.LabelSelectorRequirement{
		{in("a")}, {in("b", "a", "b", "b")}, {in("a", "b"), other}, {exists}, {in("c")}, {in("a")},
	} {
		terms = append(terms, v1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchExpressions: e}})
	}
	a := match.NewPodAffinity(&v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}, "x")
	x := newTermIndex(len(terms))
	if !x.empty() {
		t.Error("there are sets before one is added")
	}
	for i := range a.Affinity {
		x.add(&termSet{terms: a.Affinity[i : i+1], shares: []share{{column: i}}})
	}
	if x.empty() {
		t.Error("no set is there, and six were added")
	}
	for value, want := range map[string][]int{"a": {0, 1, 3, 5}, "b": {1, 3}, "c": {3, 4}, "d": {3}} {
		var got []int
		x.selecting(map[string]string{"app": value}, func(q *termSet) { got = append(got, q.shares[0].column) })
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("app=%s: the sets %v, want %v", value, got, want)
		}
	}
}

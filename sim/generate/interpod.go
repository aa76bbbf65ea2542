package generate

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// interpod gives pods terms of pod affinity and anti-affinity of every kind,
// to be with each other and with pods of other namespaces. Nodes get racks, and
// some of them host names that others have too, or none.
var interpod = feature{
	node: rackNode, pod: interpodPod, config: interpodArgs, world: namespaces,
	renode: func(b *builder, n *v1.Node) {
		n.Labels[v1.LabelHostname] = n.Name
		rackNode(b, n)
		if b.chance(50) {
			n.Labels[v1.LabelTopologyZone] = b.word("a", "b", "c", "d")
		}
	},
	repod: func(b *builder, p *v1.Pod) { labelPod(b, p) },
}

func interpodPod(b *builder, p *v1.Pod) {
	if b.chance(90) {
		labelPod(b, p)
	}
	var in v1.PodAffinity
	var anti v1.PodAntiAffinity
	if b.chance(30) {
		in.RequiredDuringSchedulingIgnoredDuringExecution = podTerms(b, p)
	}
	if b.chance(30) {
		anti.RequiredDuringSchedulingIgnoredDuringExecution = podTerms(b, p)
	}
	if b.chance(35) {
		in.PreferredDuringSchedulingIgnoredDuringExecution = weightedPodTerms(b, p)
	}
	if b.chance(35) {
		anti.PreferredDuringSchedulingIgnoredDuringExecution = weightedPodTerms(b, p)
	}
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &v1.Affinity{}
	}
	p.Spec.Affinity.PodAffinity, p.Spec.Affinity.PodAntiAffinity = &in, &anti
}

func weightedPodTerms(b *builder, p *v1.Pod) []v1.WeightedPodAffinityTerm {
	var list []v1.WeightedPodAffinityTerm
	for _, t := range podTerms(b, p) {
		list = append(list, v1.WeightedPodAffinityTerm{Weight: int32(b.pick(1, 2, 10, 50, 100)), PodAffinityTerm: t})
	}
	return list
}

func podTerms(b *builder, p *v1.Pod) []v1.PodAffinityTerm {
	var list []v1.PodAffinityTerm
	for range b.pick(1, 1, 1, 2, 3) {
		t := v1.PodAffinityTerm{LabelSelector: termSelector(b, p),
			TopologyKey: b.word(v1.LabelHostname, v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyZone, "rack")}
		if b.chance(4) {
			t.TopologyKey = "nowhere"
		}
		if b.chance(15) {
			t.Namespaces = append(t.Namespaces, b.word("default", "team-a", "team-b", "unknown"))
		}
		if b.chance(25) {
			t.NamespaceSelector = namespaceSelector(b)
		}
		list = append(list, t)
	}
	return list
}

// termSelector matches, more often than not, pods like this one.
func termSelector(b *builder, p *v1.Pod) *metav1.LabelSelector {
	switch b.IntN(12) {
	case 0:
		return nil
	case 1:
		return &metav1.LabelSelector{}
	case 2:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"web", "db"}}}}
	case 3:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "rev", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	case 4:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"db", "batch"}},
			{Key: "rev", Operator: metav1.LabelSelectorOpExists}}}
	case 5, 6, 7:
		if app, ok := p.Labels["app"]; ok {
			return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
		}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": b.word("web", "web", "db", "batch")}}
}

func namespaceSelector(b *builder) *metav1.LabelSelector {
	switch b.IntN(5) {
	case 0:
		return &metav1.LabelSelector{}
	case 1:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "team", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"a"}}}}
	case 2:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"team": b.word("a", "b")}}
}

func interpodArgs(b *builder, p *profile) {
	if b.chance(50) {
		p.args("InterPodAffinity", map[string]any{"hardPodAffinityWeight": b.pick(0, 1, 10, 100),
			"ignorePreferredTermsOfExistingPods": b.chance(40)})
	}
}

// namespaces makes those that pods are in, except for one now and then, and
// changes their labels later.
func namespaces(b *builder, w *World) {
	for _, name := range []string{"default", "team-a", "team-b"} {
		if b.chance(85) {
			w.Namespaces = append(w.Namespaces, namespace(b, name))
		}
	}
}

func namespace(b *builder, name string) *v1.Namespace {
	n := &v1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprint("namespace ", name))},
	}
	n.Labels = map[string]string{v1.LabelMetadataName: name} // as the API server labels each
	if b.chance(70) {
		n.Labels["team"] = b.word("a", "b")
	}
	return n
}

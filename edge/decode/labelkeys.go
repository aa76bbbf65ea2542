package decode

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mergeLabelKeys puts what matchLabelKeys and mismatchLabelKeys of pod affinity
// ask for into the selectors, as the API server does when a pod is created. A
// pod that was read from there has it already.
func mergeLabelKeys(p *v1.Pod) {
	a := p.Spec.Affinity
	if a == nil {
		return
	}
	if in := a.PodAffinity; in != nil {
		mergeTerms(in.RequiredDuringSchedulingIgnoredDuringExecution, in.PreferredDuringSchedulingIgnoredDuringExecution, p.Labels)
	}
	if anti := a.PodAntiAffinity; anti != nil {
		mergeTerms(anti.RequiredDuringSchedulingIgnoredDuringExecution, anti.PreferredDuringSchedulingIgnoredDuringExecution, p.Labels)
	}
}

func mergeTerms(required []v1.PodAffinityTerm, preferred []v1.WeightedPodAffinityTerm, podLabels map[string]string) {
	for i := range required {
		mergeTerm(&required[i], podLabels)
	}
	for i := range preferred {
		mergeTerm(&preferred[i].PodAffinityTerm, podLabels)
	}
}

// mergeTerm leaves alone a term without a selector, which is about no pod.
func mergeTerm(t *v1.PodAffinityTerm, podLabels map[string]string) {
	if t.LabelSelector == nil || len(t.MatchLabelKeys)+len(t.MismatchLabelKeys) == 0 {
		return
	}
	s := t.LabelSelector.DeepCopy() // it may stand in other objects, too
	require := func(keys []string, operator metav1.LabelSelectorOperator) {
		for _, key := range keys {
			value, ok := podLabels[key]
			there := slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
				return r.Key == key && r.Operator == operator
			})
			if ok && !there {
				s.MatchExpressions = append(s.MatchExpressions,
					metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
			}
		}
	}
	require(t.MatchLabelKeys, metav1.LabelSelectorOpIn)
	require(t.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	t.LabelSelector = s
}

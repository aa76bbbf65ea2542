package scenario

import (
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// setPodAffinity adds a term of pod affinity (near) or anti-affinity (away):
// the topology key, a space, a label selector, and before both, for a term that
// is preferred, its weight. Terms that name or select namespaces are
// written as YAML.
func setPodAffinity(p *v1.Pod, a attribute) error {
	words := strings.SplitN(a.value, " ", 3)
	weight, err := strconv.ParseInt(words[0], 10, 32)
	if err == nil {
		words = words[1:]
	} else {
		words = strings.SplitN(a.value, " ", 2)
	}
	if len(words) != 2 {
		return fmt.Errorf("%s=%s: want [weight] key selector", a.key, a.value)
	}
	selector, err := metav1.ParseToLabelSelector(words[1])
	if err != nil {
		return fmt.Errorf("%s=%s: %w", a.key, a.value, err)
	}
	term := v1.PodAffinityTerm{TopologyKey: words[0], LabelSelector: selector}
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &v1.Affinity{}
	}
	required, preferred := podTerms(p.Spec.Affinity, a.key == "near")
	if weight == 0 {
		*required = append(*required, term)
	} else {
		*preferred = append(*preferred, v1.WeightedPodAffinityTerm{Weight: int32(weight), PodAffinityTerm: term})
	}
	return nil
}

// setSpread adds a topology spread constraint that must hold: the largest skew, the
// topology key and a label selector.
func setSpread(p *v1.Pod, a attribute) error {
	words := strings.SplitN(a.value, " ", 3)
	skew, err := strconv.ParseInt(words[0], 10, 32)
	if err != nil || len(words) != 3 {
		return fmt.Errorf("spread=%s: want skew key selector", a.value)
	}
	selector, err := metav1.ParseToLabelSelector(words[2])
	if err != nil {
		return fmt.Errorf("spread=%s: %w", a.value, err)
	}
	p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, v1.TopologySpreadConstraint{
		MaxSkew: int32(skew), TopologyKey: words[1], WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: selector})
	return nil
}

// podTerms is where the terms belong.
func podTerms(a *v1.Affinity, near bool) (*[]v1.PodAffinityTerm, *[]v1.WeightedPodAffinityTerm) {
	if near {
		if a.PodAffinity == nil {
			a.PodAffinity = &v1.PodAffinity{}
		}
		return &a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, &a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	}
	if a.PodAntiAffinity == nil {
		a.PodAntiAffinity = &v1.PodAntiAffinity{}
	}
	return &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, &a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
}

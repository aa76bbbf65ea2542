package admission

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// covers reports whether the quota is about the pod: it limits something that pods use,
// and the pod is in each of its scopes.
func (q *quota) covers(p *v1.Pod) bool {
	if len(q.hard) == 0 {
		return false
	}
	return !slices.ContainsFunc(q.scopes, func(s v1.ScopedResourceSelectorRequirement) bool { return !inScope(p, s) })
}

func inScope(p *v1.Pod, s v1.ScopedResourceSelectorRequirement) bool {
	switch s.ScopeName {
	case v1.ResourceQuotaScopeTerminating:
		return hasDeadline(p)
	case v1.ResourceQuotaScopeNotTerminating:
		return !hasDeadline(p)
	case v1.ResourceQuotaScopeBestEffort:
		return bestEffort(p)
	case v1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort(p)
	case v1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return looksElsewhere(p.Spec.Affinity)
	case v1.ResourceQuotaScopePriorityClass:
		return selects(s, p.Spec.PriorityClassName)
	}
	return false
}

func hasDeadline(p *v1.Pod) bool {
	return p.Spec.ActiveDeadlineSeconds != nil && *p.Spec.ActiveDeadlineSeconds >= 0
}

// selects reports whether the scope's selector admits the priority class, "" for none.
func selects(s v1.ScopedResourceSelectorRequirement, class string) bool {
	operators := map[v1.ScopeSelectorOperator]selection.Operator{
		v1.ScopeSelectorOpIn: selection.In, v1.ScopeSelectorOpNotIn: selection.NotIn,
		v1.ScopeSelectorOpExists: selection.Exists, v1.ScopeSelectorOpDoesNotExist: selection.DoesNotExist,
	}
	r, err := labels.NewRequirement(string(s.ScopeName), operators[s.Operator], s.Values)
	if err != nil {
		return false
	}
	set := labels.Set{}
	if class != "" {
		set[string(s.ScopeName)] = class
	}
	return r.Matches(set)
}

// bestEffort reports whether no container, nor the pod as a whole, asks for CPU or memory.
func bestEffort(p *v1.Pod) bool {
	if p.Status.QOSClass != "" {
		return p.Status.QOSClass == v1.PodQOSBestEffort
	}
	asks := func(r *v1.ResourceRequirements) bool {
		for _, list := range []v1.ResourceList{r.Requests, r.Limits} {
			if list.Cpu().Sign() > 0 || list.Memory().Sign() > 0 {
				return true
			}
		}
		return false
	}
	if p.Spec.Resources != nil && asks(p.Spec.Resources) {
		return false
	}
	for _, list := range [][]v1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range list {
			if asks(&list[i].Resources) {
				return false
			}
		}
	}
	return true
}

// looksElsewhere reports whether an affinity term names namespaces.
func looksElsewhere(a *v1.Affinity) bool {
	if a == nil {
		return false
	}
	var terms []v1.PodAffinityTerm
	var weighted []v1.WeightedPodAffinityTerm
	if p := a.PodAffinity; p != nil {
		terms = append(terms, p.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, p.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if p := a.PodAntiAffinity; p != nil {
		terms = append(terms, p.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, p.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	for i := range weighted {
		terms = append(terms, weighted[i].PodAffinityTerm)
	}
	return slices.ContainsFunc(terms, func(t v1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil })
}

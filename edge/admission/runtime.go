package admission

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// HasRuntime reports whether the RuntimeClass that the pod names is among the rules. It is
// true for a pod that names none.
func (r *Rules) HasRuntime(p *v1.Pod) bool {
	return p.Spec.RuntimeClassName == nil || r.runtimes[*p.Spec.RuntimeClassName] != nil
}

// applyRuntime sets the overhead, the node selector and the tolerations of the pod's
// RuntimeClass. It returns why the pod cannot have them, "" if it can. An unknown class
// changes nothing.
func (r *Rules) applyRuntime(p *v1.Pod) string {
	if p.Spec.RuntimeClassName == nil || r.runtimes[*p.Spec.RuntimeClassName] == nil {
		return ""
	}
	class := r.runtimes[*p.Spec.RuntimeClassName]
	switch {
	case class.Overhead == nil && p.Spec.Overhead != nil:
		return fmt.Sprintf("it has an overhead, and RuntimeClass %s has none", class.Name)
	case class.Overhead != nil && len(p.Spec.Overhead) > 0 && !equality.Semantic.DeepEqual(p.Spec.Overhead, class.Overhead.PodFixed):
		return fmt.Sprintf("its overhead is not that of RuntimeClass %s", class.Name)
	case class.Overhead != nil:
		p.Spec.Overhead = class.Overhead.PodFixed.DeepCopy()
	}
	if class.Scheduling == nil {
		return ""
	}
	selector := maps.Clone(class.Scheduling.NodeSelector)
	for key, value := range p.Spec.NodeSelector { // any order: at most one key is reported below
		if selector == nil {
			selector = map[string]string{}
		}
		selector[key] = value
	}
	for _, key := range slices.Sorted(maps.Keys(class.Scheduling.NodeSelector)) {
		if selector[key] != class.Scheduling.NodeSelector[key] {
			return fmt.Sprintf("its node selector has %s=%s, that of RuntimeClass %s has %s=%s", key, selector[key], class.Name, key, class.Scheduling.NodeSelector[key])
		}
	}
	p.Spec.NodeSelector = selector
	for _, t := range class.Scheduling.Tolerations {
		if !slices.ContainsFunc(p.Spec.Tolerations, func(has v1.Toleration) bool { return equality.Semantic.DeepEqual(has, t) }) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, t)
		}
	}
	return ""
}

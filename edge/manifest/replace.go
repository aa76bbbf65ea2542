package manifest

import (
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// drop takes the object of this kind and name out of the set, so that another
// can take its place. Of objects that are kept decoded the last one counts.
func (s *Set) drop(o metav1.Object) {
	switch o.(type) {
	case *v1.Node:
		s.Nodes = without(s.Nodes, o)
	case *v1.Pod:
		if at := slices.IndexFunc(s.Pods, func(p *v1.Pod) bool { return p.Namespace == o.GetNamespace() && p.Name == o.GetName() }); at >= 0 {
			s.rules.Release(s.Pods[at])
		}
		s.Pods = without(s.Pods, o)
	case *policyv1.PodDisruptionBudget:
		s.Budgets = without(s.Budgets, o)
	default:
		s.Workloads = without(s.Workloads, o)
	}
}

func without[T metav1.Object](list []T, o metav1.Object) []T {
	return slices.DeleteFunc(slices.Clone(list), func(old T) bool {
		return reflect.TypeOf(old) == reflect.TypeOf(o) && old.GetNamespace() == o.GetNamespace() && old.GetName() == o.GetName()
	})
}

// Remove takes the pod out of the set, so that another may have its name.
func (s *Set) Remove(p *v1.Pod) {
	s.rules.Release(p)
	s.Pods = without(s.Pods, metav1.Object(p))
	delete(s.known, title("pod", p.Namespace, p.Name))
	delete(s.uids, "Pod "+string(p.UID))
}

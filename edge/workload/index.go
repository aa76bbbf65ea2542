package workload

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Index finds the pods of workloads without a look at the pods of others. It holds the pods
// that it was made of, and no later ones.
type Index struct{ pods map[indexKey][]*v1.Pod }

// indexKey is the kind and name of pods' controller, or a key and value of the labels of pods
// without one. The zero text in both is all pods without one.
type indexKey struct{ namespace, kind, name string }

// NewIndex returns a new Index of the pods.
func NewIndex(pods []*v1.Pod) *Index {
	x := &Index{map[indexKey][]*v1.Pod{}}
	for _, p := range pods {
		if by := metav1.GetControllerOfNoCopy(p); by != nil {
			x.add(p, by.Kind, by.Name)
			x.add(p, by.Kind, by.Name[:strings.LastIndex(by.Name, "-")+1]+"*") // as those of a Deployment's ReplicaSets
			continue
		}
		x.add(p, "", "")
		for key, value := range p.Labels { // any order: each has a list of its own
			x.add(p, "="+key, value)
		}
	}
	return x
}

func (x *Index) add(p *v1.Pod, kind, name string) {
	key := indexKey{p.Namespace, kind, name}
	x.pods[key] = append(x.pods[key], p)
}

// PodsOf returns the pods that the workload owns (Owns).
func (x *Index) PodsOf(w *Workload) (owned []*v1.Pod) {
	lists := [][]*v1.Pod{x.selected(w)}
	for kind, name := range w.owners { // any order: there is one
		lists = append(lists, x.pods[indexKey{w.Namespace, kind, name}])
	}
	for _, list := range lists {
		for _, p := range list {
			if w.Owns(p) {
				owned = append(owned, p)
			}
		}
	}
	return owned
}

// selected returns the pods without a controller that the workload's selector may match: those
// with the rarest of the labels that it asks for.
func (x *Index) selected(w *Workload) []*v1.Pod {
	rules, ok := w.selector.Requirements()
	if !ok {
		return nil // it matches nothing
	}
	rarest := x.pods[indexKey{namespace: w.Namespace}]
	for i := range rules {
		if value, exact := only(&rules[i]); exact {
			if list := x.pods[indexKey{w.Namespace, "=" + rules[i].Key(), value}]; len(list) < len(rarest) {
				rarest = list
			}
		}
	}
	return rarest
}

// only returns the one value that the rule allows; false for other rules.
func only(rule *labels.Requirement) (value string, ok bool) {
	switch rule.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		if values := rule.ValuesUnsorted(); len(values) == 1 {
			return values[0], true
		}
	}
	return "", false
}

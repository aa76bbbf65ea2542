package fix

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/match"
)

// mostMeant bounds the namespaces and labels that are tried in the place of those of a term.
const mostMeant = 3

// MeantPodLabel returns the label, of a pod's, that somebody may mean whose selector asks
// for wrong and for others that the pod has. ok is false if there is none.
func MeantPodLabel(selector *metav1.LabelSelector, labels map[string]string) (wrong, key, value string, ok bool) {
	if selector == nil || len(selector.MatchExpressions) > 0 || len(selector.MatchLabels) > mostEdits {
		return "", "", "", false
	}
	for want, is := range selector.MatchLabels { // any order: more than one that differs is none
		if has, found := labels[want]; found && has == is {
			continue
		}
		if wrong != "" {
			return "", "", "", false
		}
		wrong = want
		if key, value, ok = MeantLabel(want, is, labels); !ok {
			return "", "", "", false
		}
	}
	return wrong, key, value, ok
}

// meantPods tries, for terms of required pod affinity that no pod meets, the namespaces
// where pods meet them, and labels that pods have and that are near to those asked for.
func (s *search) meantPods() {
	if s.pod.Affinity == nil || s.spec.Affinity == nil || s.spec.Affinity.PodAffinity == nil {
		return
	}
	terms := s.spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(terms) != len(s.pod.Affinity.Affinity) {
		return // they do not parse
	}
	for i := range terms[:min(mostEdits, len(terms))] {
		for _, e := range s.meantByTerm(i, &terms[i], &s.pod.Affinity.Affinity[i]) {
			s.consider(join(s.base, []edit{e}))
		}
	}
}

// meantByTerm are edits of the term at a place; none where a pod meets it.
func (s *search) meantByTerm(place int, t *v1.PodAffinityTerm, term *match.PodTerm) (edits []edit) {
	path := at(requiredPods+"/%d", "podAffinity", place)
	namespaces, near := map[string]bool{}, map[string]edit{}
	for _, row := range s.table.All() {
		if !s.spend(1 + len(s.table.Pods(row))/10) {
			return nil
		}
		for _, pl := range s.table.Pods(row) {
			p := pl.Pod
			if term.MatchesPlaced(p.Namespace, s.table.Namespaces().Labels(p.Namespace), p.Labels) {
				return nil
			}
			if term.Selector.Matches(labels.Set(p.Labels)) {
				if !s.set.Hidden(p.Namespace) {
					namespaces[p.Namespace] = true
				}
			} else if wrong, key, value, ok := MeantPodLabel(t.LabelSelector, p.Labels); ok && term.Names(p.Namespace) && !s.set.Hidden(p.Namespace) {
				near[key+"="+value] = correctTerm(t, path, wrong, key, value)
			}
		}
	}
	for _, namespace := range firstOf(namespaces) {
		e := edit{kind: correctName, say: fmt.Sprintf("have the required pod affinity to %s look in namespace %s, too", podTerm(t), namespace),
			ops: []Op{{Op: "add", Path: path + "/namespaces/-", Value: namespace}}}
		if len(t.Namespaces) == 0 && t.NamespaceSelector == nil { // it looked in the pod's own
			e.say = fmt.Sprintf("have the required pod affinity to %s look in namespace %s (namespaces)", podTerm(t), namespace)
		}
		edits = append(edits, e)
	}
	for _, label := range firstOf(near) {
		edits = append(edits, near[label])
	}
	return edits
}

// correctTerm has the term's selector ask for a label in the place of another.
func correctTerm(t *v1.PodAffinityTerm, path, wrong, key, value string) edit {
	want := maps.Clone(t.LabelSelector.MatchLabels)
	delete(want, wrong)
	want[key] = value
	return edit{kind: correctName, say: fmt.Sprintf("have the required pod affinity want %s=%s in place of %s=%s", key, value, wrong, t.LabelSelector.MatchLabels[wrong]),
		ops: []Op{{Op: "replace", Path: path + "/labelSelector/matchLabels", Value: want}}}
}

// firstOf returns the first keys, sorted.
func firstOf[V any](m map[string]V) []string {
	keys := slices.Sorted(maps.Keys(m))
	return keys[:min(mostMeant, len(keys))]
}

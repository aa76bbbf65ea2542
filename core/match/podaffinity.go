package match

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/errors"
)

// TermKind is the kind of a term of pod affinity.
type TermKind uint8

const (
	// RequiredAffinity: the pod must be in a domain with matching pods.
	RequiredAffinity TermKind = iota
	// RequiredAntiAffinity: the pod must be in a domain without matching pods.
	RequiredAntiAffinity
	// PreferredPods: the pod prefers a domain with matching pods. With a negative
	// weight it prefers a domain without them.
	PreferredPods
)

// PodTerm is a term of pod affinity or anti-affinity: it selects pods in some namespaces by
// their labels, and topology domains by the value that nodes have for the topology key.
// Immutable.
type PodTerm struct {
	// Key identifies the content of the term.
	Key         string
	Kind        TermKind
	Weight      int64 // of PreferredPods; negative for preferred anti-affinity
	TopologyKey string
	Selector    Selector
	// Namespaces are named ones, sorted and each once. NamespaceSelector selects more by
	// their labels; nil selects none.
	Namespaces        []string
	NamespaceSelector labels.Selector
}

// Names reports whether the namespace is in Namespaces.
func (t *PodTerm) Names(namespace string) bool {
	_, named := slices.BinarySearch(t.Namespaces, namespace)
	return named
}

// SelectsNamespace reports whether the term selects placed pods of the namespace, by its name
// or by its labels. namespaceLabels is empty for a namespace that the scheduler does not know:
// as in kube-scheduler, only its name selects it, or a NamespaceSelector that selects all. Each
// namespace that exists has a label.
func (t *PodTerm) SelectsNamespace(namespace string, namespaceLabels map[string]string) bool {
	return t.Names(namespace) || t.SelectsNamespaceLabels(namespaceLabels)
}

// SelectsNamespaceLabels reports whether the term's namespaceSelector selects, for placed
// pods, a namespace with these labels. Without labels the namespace is not known, and only a
// selector that selects all selects it.
func (t *PodTerm) SelectsNamespaceLabels(namespaceLabels map[string]string) bool {
	s := t.NamespaceSelector
	return s != nil && (len(namespaceLabels) > 0 || s.Empty()) && s.Matches(labels.Set(namespaceLabels))
}

// MatchesPlaced reports whether the term of a pod to be placed selects a placed pod with
// podLabels in the namespace. namespaceLabels are the namespace's; they are empty if it is not
// known: then only its name selects it, or a NamespaceSelector that selects all.
func (t *PodTerm) MatchesPlaced(namespace string, namespaceLabels, podLabels map[string]string) bool {
	return t.SelectsNamespace(namespace, namespaceLabels) && t.Selector.Matches(labels.Set(podLabels))
}

// MatchesPending reports whether the term of a placed pod selects a pod to be placed, with
// podLabels, in the namespace. namespaceLabels are the namespace's, empty if it is not known.
// The NamespaceSelector is matched with them in either case.
func (t *PodTerm) MatchesPending(namespace string, namespaceLabels, podLabels map[string]string) bool {
	in := t.Names(namespace) || t.NamespaceSelector != nil && t.NamespaceSelector.Matches(labels.Set(namespaceLabels))
	return in && t.Selector.Matches(labels.Set(podLabels))
}

// MayMatch reports whether the term could select a pod with these labels in the namespace,
// where the labels of the namespace are not known: a NamespaceSelector counts as if it
// matched.
func (t *PodTerm) MayMatch(namespace string, podLabels map[string]string) bool {
	return (t.NamespaceSelector != nil || t.Names(namespace)) && t.Selector.Matches(labels.Set(podLabels))
}

// PodAffinity is spec.affinity.podAffinity and podAntiAffinity of a pod. A nil
// *PodAffinity is a pod that has neither.
type PodAffinity struct {
	// Key identifies the terms and their order.
	Key string
	// Terms are all terms, in the order Affinity (required), AntiAffinity (required),
	// Preferred (both); these three are parts of it. If a term does not parse, its whole
	// list is left out.
	Terms                             []PodTerm
	Affinity, AntiAffinity, Preferred []PodTerm
	// Prefers is set if the pod has preferred terms, valid or not.
	Prefers bool
	// SelectsNamespaces is set if one of the terms has a NamespaceSelector.
	SelectsNamespaces bool
	// Invalid is the error of the terms that do not parse, nil for none; kube-scheduler
	// rejects a pod with such terms.
	Invalid error
}

// NewPodAffinity compiles the pod affinity and anti-affinity terms of a pod in the namespace.
// It returns nil if there are none. It sets Invalid if some do not parse. The API server has
// already merged matchLabelKeys and mismatchLabelKeys into the selectors.
func NewPodAffinity(a *v1.Affinity, namespace string) *PodAffinity {
	if a == nil {
		return nil
	}
	var in v1.PodAffinity
	var anti v1.PodAntiAffinity
	if a.PodAffinity != nil {
		in = *a.PodAffinity
	}
	if a.PodAntiAffinity != nil {
		anti = *a.PodAntiAffinity
	}
	c := podTerms{own: []string{namespace}}
	c.terms = make([]PodTerm, 0, len(in.RequiredDuringSchedulingIgnoredDuringExecution)+len(anti.RequiredDuringSchedulingIgnoredDuringExecution)+
		len(in.PreferredDuringSchedulingIgnoredDuringExecution)+len(anti.PreferredDuringSchedulingIgnoredDuringExecution))
	c.required("requiredAffinityTerms", RequiredAffinity, in.RequiredDuringSchedulingIgnoredDuringExecution)
	affinity := len(c.terms)
	c.required("requiredAntiAffinityTerms", RequiredAntiAffinity, anti.RequiredDuringSchedulingIgnoredDuringExecution)
	required := len(c.terms)
	c.preferred("preferredAffinityTerms", 1, in.PreferredDuringSchedulingIgnoredDuringExecution)
	c.preferred("preferredAntiAffinityTerms", -1, anti.PreferredDuringSchedulingIgnoredDuringExecution)
	if len(c.terms) == 0 && len(c.invalid) == 0 {
		return nil
	}
	p := &PodAffinity{
		Terms: c.terms, Affinity: c.terms[:affinity], AntiAffinity: c.terms[affinity:required], Preferred: c.terms[required:],
		Prefers: len(in.PreferredDuringSchedulingIgnoredDuringExecution)+len(anti.PreferredDuringSchedulingIgnoredDuringExecution) > 0,
	}
	size := 0
	for i := range c.terms {
		size += len(c.terms[i].Key) + len("12345:")
	}
	key := make([]byte, 0, size)
	if len(c.invalid) > 0 {
		p.Invalid = errors.NewAggregate(c.invalid) // in the words that users search for
		key = append(AppendField(key, p.Invalid.Error()), '!')
	}
	for i := range c.terms {
		key = AppendField(key, c.terms[i].Key)
		p.SelectsNamespaces = p.SelectsNamespaces || c.terms[i].NamespaceSelector != nil
	}
	p.Key = string(key)
	return p
}

// podTerms compiles the lists of terms of one pod.
type podTerms struct {
	own              []string // the pod's namespace
	terms            []PodTerm
	invalid          []error
	key, selectorKey []byte // scratch
}

// required compiles a list of required terms. field names the list in errors.
func (c *podTerms) required(field string, kind TermKind, list []v1.PodAffinityTerm) {
	c.add(field, len(list), func(i int) (PodTerm, error) { return c.compile(kind, 0, &list[i]) })
}

// preferred compiles a list of preferred terms, whose weights are multiplied by sign (-1
// for anti-affinity). field names the list in errors.
func (c *podTerms) preferred(field string, sign int64, list []v1.WeightedPodAffinityTerm) {
	c.add(field, len(list), func(i int) (PodTerm, error) {
		return c.compile(PreferredPods, sign*int64(list[i].Weight), &list[i].PodAffinityTerm)
	})
}

// add appends the results of term for 0 to n-1. If one is an error it appends none, and
// records the error with field.
func (c *podTerms) add(field string, n int, term func(i int) (PodTerm, error)) {
	before := len(c.terms)
	for i := range n {
		t, err := term(i)
		if err != nil {
			c.terms = c.terms[:before]
			c.invalid = append(c.invalid, fmt.Errorf("%s: %w", field, err))
			return
		}
		c.terms = append(c.terms, t)
	}
}

// compile compiles one term. As in the API, a term without namespaces and namespaceSelector
// means the pod's own namespace, an empty selector selects all, and no labelSelector selects no
// pod.
func (c *podTerms) compile(kind TermKind, weight int64, in *v1.PodAffinityTerm) (PodTerm, error) {
	selector, err := metav1.LabelSelectorAsSelector(in.LabelSelector)
	if err != nil {
		return PodTerm{}, err
	}
	t := PodTerm{Kind: kind, Weight: weight, Selector: Selector{Selector: selector}}
	if in.NamespaceSelector != nil {
		if t.NamespaceSelector, err = metav1.LabelSelectorAsSelector(in.NamespaceSelector); err != nil {
			return PodTerm{}, err
		}
	}
	if len(in.Namespaces) == 0 && in.NamespaceSelector == nil {
		t.Namespaces = c.own
	} else {
		t.Namespaces = slices.Compact(slices.Sorted(slices.Values(in.Namespaces)))
	}
	c.setKeys(&t, in.TopologyKey)
	return t, nil
}

// setKeys sets the keys of the term and its selector, and its topology key, as parts of one
// string, since a pod may have thousands of terms.
func (c *podTerms) setKeys(t *PodTerm, topology string) {
	c.selectorKey = appendSelector(c.selectorKey[:0], t.Selector.Selector)
	key := appendNumber(append(c.key[:0], 'k'), int64(t.Kind))
	key = appendNumber(key, t.Weight)
	key = AppendField(key, topology)
	topologyEnd := len(key)
	key = AppendField(key, string(c.selectorKey))
	selectorEnd := len(key)
	for _, n := range t.Namespaces {
		key = append(AppendField(key, n), ',')
	}
	if t.NamespaceSelector != nil {
		key = append(AppendField(key, string(appendSelector(nil, t.NamespaceSelector))), '~')
	}
	c.key, t.Key = key, string(key)
	t.TopologyKey = t.Key[topologyEnd-len(topology) : topologyEnd]
	t.Selector.Key = t.Key[selectorEnd-len(c.selectorKey) : selectorEnd]
}

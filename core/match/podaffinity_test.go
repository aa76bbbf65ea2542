package match

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

func podAffinity(t *testing.T, namespace, text string) *PodAffinity {
	t.Helper()
	var a v1.Affinity
	if err := yaml.UnmarshalStrict([]byte(text), &a); err != nil {
		t.Fatal(err)
	}
	return NewPodAffinity(&a, namespace)
}

const requires = "podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: ["

// A namespace that a term lists twice counts once.
func TestNamespacesOfATerm(t *testing.T) {
	term := v1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{}, Namespaces: []string{"b", "a", "b"}}
	a := NewPodAffinity(&v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term}}}, "x")
	if got := a.Affinity[0].Namespaces; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("namespaces %v", got)
	}
}

// A term selects pods by labels, by namespaces and by labels of namespaces.
func TestWhoATermIsAbout(t *testing.T) {
	for _, c := range []struct {
		term                string
		home, there, labels bool // own namespace; another; another that has team=a
	}{
		{"{labelSelector: {matchLabels: {app: x}}}", true, false, false},
		{"{}", false, false, false},
		{"{labelSelector: {}}", true, false, false},
		{"{labelSelector: {matchLabels: {app: y}}}", false, false, false},
		{"{labelSelector: {}, namespaces: [there]}", false, true, true},
		{"{labelSelector: {}, namespaceSelector: {}}", true, true, true},
		{"{labelSelector: {}, namespaceSelector: {matchLabels: {team: a}}}", false, false, true},
		{"{labelSelector: {}, namespaceSelector: {matchLabels: {team: a}}, namespaces: [home]}", true, false, true},
		{"{labelSelector: {}, namespaceSelector: {matchExpressions: [{key: x, operator: DoesNotExist}]}}", false, false, true},
	} {
		term := podAffinity(t, "home", requires+c.term+"]}").Affinity[0]
		pod := map[string]string{"app": "x"}
		got := []bool{term.MatchesPlaced("home", nil, pod), term.MatchesPlaced("there", nil, pod), term.MatchesPlaced("there", map[string]string{"team": "a"}, pod)}
		if want := []bool{c.home, c.there, c.labels}; got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
			t.Errorf("%s: %v, want %v", c.term, got, want)
		}
		if s := term.NamespaceSelector; s != nil && term.MatchesPending("there", nil, pod) != s.Matches(labels.Set(nil)) {
			t.Errorf("%s: the selector is not asked about a namespace that is not known", c.term)
		}
		if c.labels && !term.MayMatch("there", pod) {
			t.Errorf("%s: may not match", c.term)
		}
	}
}

// A list with a term that does not parse is left out and named, and the other
// lists stay.
func TestInvalidLists(t *testing.T) {
	bad := "{labelSelector: {matchExpressions: [{key: a, operator: Near}]}}"
	a := podAffinity(t, "home", requires+"{labelSelector: {}}, "+bad+"]}\npodAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {}}], "+
		"preferredDuringSchedulingIgnoredDuringExecution: [{weight: 3, podAffinityTerm: "+bad+"}]}")
	want := `[requiredAffinityTerms: "Near" is not a valid label selector operator, preferredAntiAffinityTerms: "Near" is not a valid label selector operator]`
	if a.Invalid == nil || a.Invalid.Error() != want {
		t.Errorf("invalid: %v", a.Invalid)
	}
	if len(a.Affinity) != 0 || len(a.AntiAffinity) != 1 || len(a.Preferred) != 0 || !a.Prefers {
		t.Errorf("%d, %d and %d terms", len(a.Affinity), len(a.AntiAffinity), len(a.Preferred))
	}
	if NewPodAffinity(&v1.Affinity{PodAffinity: &v1.PodAffinity{}}, "home") != nil {
		t.Error("no terms are something")
	}
}

// Keys differ where terms do.
func TestPodAffinityKeys(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{
		requires + "{labelSelector: {}}]}",
		requires + "{}]}",
		requires + "{labelSelector: {}, topologyKey: zone}]}",
		requires + "{labelSelector: {}, namespaces: [other]}]}",
		requires + "{labelSelector: {}, namespaceSelector: {}}]}",
		requires + "{labelSelector: {}}, {labelSelector: {}}]}",
		"podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {}}]}",
		"podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {labelSelector: {}}}]}",
		"podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 2, podAffinityTerm: {labelSelector: {}}}]}",
		"podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {labelSelector: {}}}]}",
	} {
		key := podAffinity(t, "home", text).Key
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s have one key", text, other)
		}
		seen[key] = text
	}
}

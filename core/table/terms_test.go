package table

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
)

var (
	namespaceNames = rapid.SampledFrom([]string{"default", "team-a", "team-b"})
	someLabels     = rapid.MapOfN(rapid.SampledFrom([]string{"app", "zone", "own"}), rapid.SampledFrom([]string{"a", "b", ""}), 0, 3)
	someSelector   = rapid.SampledFrom([]*metav1.LabelSelector{
		nil, {}, {MatchLabels: map[string]string{"app": "a"}}, {MatchLabels: map[string]string{"app": "b"}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpDoesNotExist}}},
	})
)

func drawLabels(t *rapid.T) map[string]string { return someLabels.Draw(t, "labels") }

func drawAffinity(t *rapid.T, namespace string) *match.PodAffinity {
	var terms []v1.PodAffinityTerm
	for range rapid.IntRange(0, 2).Draw(t, "terms") {
		terms = append(terms, v1.PodAffinityTerm{
			TopologyKey:       rapid.SampledFrom([]string{"zone", "own", ""}).Draw(t, "topology"),
			LabelSelector:     someSelector.Draw(t, "selector"),
			NamespaceSelector: someSelector.Draw(t, "namespaces"),
		})
	}
	anti := &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
	return match.NewPodAffinity(&v1.Affinity{PodAntiAffinity: anti}, namespace)
}

func (w *world) setNamespace(t *rapid.T) {
	w.Namespaces().Set(&object.Namespace{Name: namespaceNames.Draw(t, "namespace"), Labels: drawLabels(t)})
}

// compareTerms: of the terms of placed pods, About names those that match.
func (w *world) compareTerms(t *rapid.T) {
	p := &object.Pod{Namespace: "team-a", Labels: map[string]string{"app": "a"}}
	want := map[string]bool{}
	for _, placed := range w.m.pods {
		if placed.pod.Affinity == nil {
			continue
		}
		for i := range placed.pod.Affinity.Terms {
			term := &placed.pod.Affinity.Terms[i]
			if term.MatchesPending(p.Namespace, w.Namespaces().Labels(p.Namespace), p.Labels) {
				want[term.Key] = true
			}
		}
	}
	got, last := map[string]bool{}, uint64(0)
	for _, term := range w.Terms().About(p).Terms() {
		if term.ID <= last {
			t.Fatalf("term %d after %d", term.ID, last)
		}
		if last = term.ID; len(term.rows.list) > 0 {
			got[term.Key] = true
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("terms %v, want %v", got, want)
	}
}

// compareCrowds begins to keep them, too.
func (w *world) compareCrowds(t *rapid.T) {
	var got, want []types.UID
	w.PodNamespaces(func(name string) {
		w.PodsByLabels(name, func(c *PodsWithLabels) {
			for _, pl := range c.Pods() {
				got = append(got, pl.Pod.UID)
			}
		})
	})
	for uid := range w.m.pods { // any order: sorted below
		want = append(want, uid)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("in crowds %v, want %v", got, want)
	}
}

// hermit returns a pod with a term that no other one has, which is about the pod itself.
func hermit(i int) *object.Pod {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{fmt.Sprint("app-", i): "x"}}
	anti := &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{TopologyKey: "own", LabelSelector: selector}}}
	return &object.Pod{UID: types.UID(fmt.Sprint(i)), Labels: selector.MatchLabels, Affinity: match.NewPodAffinity(&v1.Affinity{PodAntiAffinity: anti}, "")}
}

// Terms are not swept while placed pods have most of them: a sweep goes through all, and
// those about each pod are looked for anew.
func TestTermsInUseAreNotSwept(t *testing.T) {
	tb := New()
	tb.SetNode(&object.Node{Name: "a", Labels: map[string]string{"own": "a"}})
	for i := range 5 * termsKept {
		tb.AddPod(hermit(i), "a")
	}
	for i := range 2 * termsKept {
		tb.RemovePod(hermit(i).UID)
	}
	if err := tb.Check(); err != nil {
		t.Error(err)
	}
	if tb.Terms().Swept() > 0 || tb.terms.idle != 2*termsKept {
		t.Errorf("%d terms are of no pod, swept %d times", tb.terms.idle, tb.Terms().Swept())
	}
}

// A table that is rebuilt still knows which terms only nominated pods have: they are in use.
func TestRebuildKeepsNominatedTerms(t *testing.T) {
	tb := New()
	tb.SetNode(&object.Node{Name: "a", Labels: map[string]string{"own": "a"}})
	tb.AddPod(hermit(1), "a")
	tb.Terms().TrackNominated("a", []*object.Pod{hermit(2)})
	tb.Rebuild()
	if err := tb.Check(); err != nil || tb.terms.idle != 0 {
		t.Errorf("%d terms are said not to be used: %v", tb.terms.idle, err)
	}
}

// Terms that come and go for ever are forgotten, and so is who they are about.
func TestTermsAreForgotten(t *testing.T) {
	tb := New()
	tb.SetNode(&object.Node{Name: "a", Labels: map[string]string{"own": "a"}})
	for i := range 5 * termsKept {
		p := hermit(i)
		tb.AddPod(p, "a")
		if about := tb.Terms().About(p).Terms(); len(about) != 1 || !about[0].Live() {
			t.Fatalf("pod %d: terms %v", i, about)
		}
		tb.RemovePod(p.UID)
	}
	if n := len(tb.terms.list); n > termsKept+1 || len(tb.terms.byKey) != n || len(tb.terms.labels) > n || len(tb.terms.about) > n {
		t.Errorf("%d terms, %d by key, %d labels, %d sets of labels", n, len(tb.terms.byKey), len(tb.terms.labels), len(tb.terms.about))
	}
}

package table

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// What comes and goes without end leaves nothing behind that grows with it.

func check(t *testing.T, tab *Table) {
	t.Helper()
	if err := tab.Check(); err != nil {
		t.Fatal(err)
	}
}

func atMost(t *testing.T, what string, n, most int) {
	t.Helper()
	if n > most {
		t.Errorf("%d %s, want at most %d", n, what, most)
	}
}

// Nodes that offer, and pods that take, a resource that nobody else knows.
func TestResourcesWithoutEnd(t *testing.T) {
	tab := New()
	offers := func(i int) resource.Vector {
		return resource.Vector{MilliCPU: 1, Scalars: []resource.Scalar{{Name: v1.ResourceName(fmt.Sprint("example.com/offered-", i)), Value: int64(1 + i)}}}
	}
	for i := range 5000 {
		tab.SetNode(&object.Node{Name: fmt.Sprint("node-", i%7), Allocatable: offers(i)})
		p := &object.Pod{UID: types.UID(fmt.Sprint("pod-", i%11))}
		p.Demand.Usage.Scalars = []resource.Scalar{{Name: v1.ResourceName(fmt.Sprint("example.com/taken-", i)), Value: 3}}
		tab.AddPod(p, fmt.Sprint("node-", i%5))
		if i%500 == 0 {
			check(t, tab)
		}
	}
	check(t, tab)
	atMost(t, "columns", len(tab.columns.used), int(firstScalar)+columnsKept+1)
	atMost(t, "names", len(tab.columns.scalars.ids), columnsKept+1)
	for i := 4990; i < 5000; i++ {
		if i < 4993 {
			continue // that node offers something else by now
		}
		r, _ := tab.Find(fmt.Sprint("node-", i%7))
		id, ok := tab.Column(offers(i).Scalars[0].Name)
		if !ok || tab.Allocatable(id)[r] != int64(1+i) {
			t.Errorf("the resource that node-%d offers is not what it has a column for", i%7)
		}
	}
	if _, ok := tab.Column("example.com/offered-17"); ok {
		t.Error("a resource that nobody offers has columns")
	}
}

// A resource that has no columns any more while a try needs them is there
// again when the try is taken back.
func TestColumnsUnderATry(t *testing.T) {
	tab := New()
	tab.SetNode(&object.Node{Name: "a"})
	p := &object.Pod{UID: "p"}
	p.Demand.Usage.Scalars = []resource.Scalar{{Name: "example.com/kept", Value: 3}}
	tab.AddPod(p, "a")
	mark := tab.Checkpoint()
	tab.RemovePod("p")
	for i := range 3 * columnsKept {
		q := &object.Pod{UID: types.UID(fmt.Sprint("q-", i))}
		q.Demand.Usage.Scalars = []resource.Scalar{{Name: v1.ResourceName(fmt.Sprint("example.com/tried-", i)), Value: 1}}
		tab.AddPod(q, "a")
		tab.RemovePod(q.UID)
	}
	tab.Undo(mark)
	check(t, tab)
	if id, ok := tab.Column("example.com/kept"); !ok || tab.Used(id)[0] != 3 {
		t.Error("what was removed in a try is not back")
	}
}

// A node that flaps, a thousand times in a row, pods of its own on it or not,
// and with images, host names and ports.
func TestFlappingNode(t *testing.T) {
	tab := New()
	n := &object.Node{Name: "a", Labels: map[string]string{v1.LabelHostname: "a"}, Images: []object.Image{{Names: []string{"x", "y"}, Bytes: 1}}}
	for i := range 1000 {
		tab.SetNode(n)
		if i%3 == 0 {
			tab.AddPod(&object.Pod{UID: "p", HostPorts: []object.HostPort{{IP: "0.0.0.0", Protocol: "TCP", Port: 80}}}, "a")
		}
		tab.RemoveNode("a")
		if i%3 == 1 {
			tab.RemovePod("p")
		}
	}
	tab.RemovePod("p")
	check(t, tab)
	atMost(t, "rows", tab.Rows(), 1)
	atMost(t, "names of rows", len(tab.rows.of), 0)
	atMost(t, "free rows", len(tab.rows.free), 1)
	atMost(t, "entries of the journal", len(tab.podChanges.ring), podChangesKept)
}

// Pods without end, each with labels and a term of its own, in a namespace of
// its own, and asked about.
func TestTermsWithoutEnd(t *testing.T) {
	tab := New()
	tab.SetNode(&object.Node{Name: "a", Labels: map[string]string{"zone": "a"}})
	tab.PodsByLabels("none", nil) // from here on they are kept
	for i := range 40_000 {
		namespace, word := fmt.Sprint("ns-", i%300), fmt.Sprint("word-", i)
		tab.Namespaces().Set(&object.Namespace{Name: namespace, Labels: map[string]string{"n": word}})
		p := &object.Pod{UID: types.UID(word), Namespace: namespace, Labels: map[string]string{"app": word, word: "x"}}
		if i%8 == 0 {
			p.Affinity = keepsAway(namespace, word)
		}
		tab.Terms().About(p)
		tab.AddPod(p, "a")
		if i >= 30 {
			tab.RemovePod(types.UID(fmt.Sprint("word-", i-30)))
		}
		tab.Namespaces().Set(&object.Namespace{Name: namespace})
	}
	check(t, tab)
	atMost(t, "terms", len(tab.terms.list), termsKept+1)
	atMost(t, "terms by key", len(tab.terms.byKey), termsKept+1)
	atMost(t, "labels that selectors look at", len(tab.terms.labels), 2*termsKept)
	atMost(t, "kinds of pods", len(tab.terms.about), aboutsKept)
	atMost(t, "namespaces with labels", len(tab.namespaces.labels), 0)
	atMost(t, "namespaces with pods", len(tab.podsByLabels.byNamespace), 30)
	crowds := 0
	tab.PodNamespaces(func(name string) { tab.PodsByLabels(name, func(*PodsWithLabels) { crowds++ }) })
	atMost(t, "crowds", crowds, 30)
	atMost(t, "entries of the journal", len(tab.podChanges.ring), podChangesKept)
	atMost(t, "entries to undo", len(tab.tries.undo), 0)
}

// Terms of pods that are nominated and never placed.
func TestLearntTermsWithoutEnd(t *testing.T) {
	tab := New()
	for i := range 5 * termsKept {
		p := &object.Pod{UID: "p", Affinity: keepsAway("ns", fmt.Sprint("word-", i))}
		tab.Terms().Track(p)
		tab.AddPod(&object.Pod{UID: "plain"}, "a")
		tab.RemovePod("plain")
	}
	atMost(t, "terms", len(tab.terms.list), termsKept+1)
}

func keepsAway(namespace, word string) *match.PodAffinity {
	return match.NewPodAffinity(&v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{TopologyKey: "zone",
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": word, word: "y"}}}},
	}}, namespace)
}

// Services and controllers that come and go.
func TestSelectorOwnersWithoutEnd(t *testing.T) {
	tab := New()
	for i := range 1000 {
		name := fmt.Sprint("owner-", i)
		for _, kind := range []object.SelectorOwnerKind{object.Service, object.ReplicaSet} {
			tab.SelectorOwners().Set(&object.SelectorOwner{Kind: kind, Namespace: "ns", Name: name, Labels: map[string]string{"app": name}})
			tab.SelectorOwners().Remove(kind, "ns", name)
		}
	}
	atMost(t, "selector owners", len(tab.selectorOwners.byName), 0)
	atMost(t, "labels of Services", len(tab.selectorOwners.services), 0)
}

package interpodaffinity

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

func mustNew(t *testing.T, args *configv1.InterPodAffinityArgs) framework.Plugin {
	t.Helper()
	p, err := New(args)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func app(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

func by(key string, selectors ...*metav1.LabelSelector) *v1.Affinity {
	a := &v1.Affinity{PodAffinity: &v1.PodAffinity{}}
	for _, s := range selectors {
		list := &a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, v1.PodAffinityTerm{TopologyKey: key, LabelSelector: s})
	}
	return a
}

func away(key string, selectors ...*metav1.LabelSelector) *v1.Affinity {
	a := by(key, selectors...)
	return &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution}}
}

func pod(name, app, node string, a *v1.Affinity) *object.Pod {
	return &object.Pod{UID: types.UID(name), Name: name, Namespace: "ns", NodeName: node,
		Labels: map[string]string{"app": app}, Affinity: match.NewPodAffinity(a, "ns")}
}

// Each verdict has kube-scheduler's code and reason.
func TestReasons(t *testing.T) {
	codes := map[framework.Verdict]string{
		affinityNotMet:             "UnschedulableAndUnresolvable: node(s) didn't match pod affinity rules",
		antiAffinityNotMet:         "Unschedulable: node(s) didn't match pod anti-affinity rules",
		existingAntiAffinityNotMet: "Unschedulable: node(s) didn't satisfy existing pods anti-affinity rules",
	}
	for v, want := range codes { // any order: each alone
		b := explain(nil, 0, v)
		if got := b.Code.String() + ": " + strings.Join(b.Reasons, ", "); got != want {
			t.Errorf("verdict %d: %q, want %q", v, got, want)
		}
	}
}

// A hard affinity weight out of range is refused with its field.
func TestArguments(t *testing.T) {
	for _, weight := range []int32{-1, 101} {
		if _, err := New(&configv1.InterPodAffinityArgs{HardPodAffinityWeight: &weight}); err == nil || !strings.Contains(err.Error(), "hardPodAffinityWeight") {
			t.Errorf("weight %d: %v", weight, err)
		}
	}
}

// Scores are stretched from the least and the most to 0 and 100, cut off, and all equal
// scores become 0.
func TestNormalize(t *testing.T) {
	for _, c := range []struct{ raw, least, most, want int64 }{
		{5, 5, 5, 0}, {-3, -3, 4, 0}, {4, -3, 4, 100}, {0, -3, 4, 42}, {1, 0, 3, 33}, {29, 0, 100, 28}, {2, 0, 3, 66},
	} {
		if got := normalize(c.raw, c.least, c.most); got != c.want {
			t.Errorf("normalize(%d, %d, %d) = %d, want %d", c.raw, c.least, c.most, got, c.want)
		}
	}
}

// A pod whose terms do not parse is rejected in kube-scheduler's words. Placed,
// it harms nobody, and those of its terms that do parse count.
func TestInvalidTerms(t *testing.T) {
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	p, tb := mustNew(t, nil), plugintest.Table(&object.Node{Name: "a", Labels: map[string]string{"zone": "z"}})
	a := by("zone", bad)
	a.PodAntiAffinity = away("zone", app("x")).PodAntiAffinity
	invalid := pod("bad", "x", "", a)
	got := p.PreFilter(tb, invalid).Status
	want := `parsing pod: requiredAffinityTerms: "Near" is not a valid label selector operator`
	if got == nil || got.Code != decision.UnschedulableAndUnresolvable || got.Reasons[0] != want {
		t.Fatalf("got %+v, want %q", got, want)
	}
	tb.AddPod(invalid, "a")
	for name, kept := range map[string]bool{"x": true, "y": false} { // any order: each alone
		prepared := p.PreFilter(tb, pod("p", name, "", nil))
		if prepared.Status != nil || prepared.Skip == kept {
			t.Errorf("pod of app %s: %+v", name, prepared)
		}
	}
}

// Many pods with the same labels are counted as one after the other is.
func TestManyPodsWithTheSameLabels(t *testing.T) {
	p, tb := mustNew(t, nil), plugintest.Table()
	for i := range 6 {
		name := fmt.Sprint("n", i)
		tb.SetNode(&object.Node{Name: name, Labels: map[string]string{v1.LabelHostname: name, "zone": []string{"a", "a", "b"}[i%3]}})
	}
	for i := range 60 {
		name := fmt.Sprint("n", i%5) // 12 on each node but the last: 48 in zone a, 12 in zone b
		tb.AddPod(pod(fmt.Sprint("p", i), "web", name, nil), name)
	}
	wants := &v1.Affinity{PodAffinity: &v1.PodAffinity{}}
	for key, weight := range map[string]int32{"zone": 7, v1.LabelHostname: 3} {
		list := &wants.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, v1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: v1.PodAffinityTerm{TopologyKey: key, LabelSelector: app("web")}})
	}
	got := plugintest.Ask(t, p, tb, pod("p", "x", "", wants)).Scores
	if got["n0"] != 7*48+3*12 || got["n2"] != 7*12+3*12 || got["n5"] != 7*12 {
		t.Errorf("scores %v", got)
	}
}

// A thousand anti-affinity terms with odd keys reject the node that breaks one, and no
// other.
func TestManyTerms(t *testing.T) {
	p, tb := mustNew(t, nil), plugintest.Table()
	for i := range 50 {
		tb.SetNode(&object.Node{Name: fmt.Sprint("n", i), Labels: map[string]string{v1.LabelHostname: fmt.Sprint("n", i), "": "odd"}})
	}
	many := &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{}}
	for i := range 10_000 {
		list := &many.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, v1.PodAffinityTerm{TopologyKey: []string{"", v1.LabelHostname, fmt.Sprint("key-", i)}[i%3], LabelSelector: app(fmt.Sprint("app-", i))})
	}
	tb.AddPod(pod("many", "app-1", "n0", many), "n0")
	for i, want := range []framework.Verdict{antiAffinityNotMet, framework.Fits} {
		state := p.PreFilter(tb, pod("p", "x", "", many)).State
		in := &framework.Input{Table: tb, State: state}
		p.CellFilter.Sync(in)
		cells := make([]int64, tb.Rows())
		p.CellFilter.Cells(in, in.Table.All(), cells)
		if got := p.CellFilter.Filter(in, cells[i]); got != want {
			t.Errorf("node %d: %d, want %d", i, got, want)
		}
	}
}

// What terms of a class say of pods that could go is kept by their labels: neither for
// others, whose number has the same place, nor for the next class.
func TestTermsAboutPodsThatCouldGo(t *testing.T) {
	p, tb := mustNew(t, nil), plugintest.Table()
	for _, name := range []string{"a", "b"} {
		tb.SetNode(&object.Node{Name: name, Labels: map[string]string{v1.LabelHostname: name}})
	}
	tb.PodsByLabels("ns", func(*table.PodsWithLabels) {}) // from here on they are kept
	place := func(app, node string, priority int32) {
		q := pod(fmt.Sprint(app, priority), app, node, nil)
		q.Priority = priority
		tb.AddPod(q, node)
	}
	place("web", "a", 0)
	place("web", "a", 9)
	place("mail", "a", 0)
	place("mail", "b", 9) // stays, and the number with it
	for i := range labelSetsKept - 2 {
		place(fmt.Sprint("other-", i), "b", 9)
	}
	place("db", "a", 0) // is in the place of web
	place("db", "b", 9)
	rows := map[string]table.Row{}
	for _, name := range []string{"a", "b"} {
		rows[name], _ = tb.Find(name)
	}
	for _, of := range []string{"web", "db", "mail", "web"} {
		asks := pod("asks", "x", "", away(v1.LabelHostname, app(of)))
		asks.Priority = 5
		in := &framework.Input{Table: tb, Pod: asks, State: p.PreFilter(tb, asks).State}
		for _, name := range []string{"a", "b"} {
			if !plugintest.CheckExchanged(t, &p, in, rows[name], asks.Priority) {
				t.Errorf("away from %s, node %s: not known", of, name)
			}
		}
	}
}

package nodeaffinity

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	config "k8s.io/kube-scheduler/config/v1"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

const (
	blockedByPod    = "UnschedulableAndUnresolvable: node(s) didn't match Pod's node affinity/selector"
	blockedByConfig = "UnschedulableAndUnresolvable: node(s) didn't match scheduler-enforced node affinity"
)

var (
	zone = rapid.SampledFrom([]string{"a", "b", "c"})
	op   = rapid.SampledFrom([]v1.NodeSelectorOperator{v1.NodeSelectorOpIn, v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn, "Near"})
	term = rapid.Custom(func(t *rapid.T) v1.NodeSelectorTerm {
		r := []v1.NodeSelectorRequirement{{Key: "zone", Operator: op.Draw(t, "op"), Values: []string{zone.Draw(t, "zone")}}}
		if rapid.IntRange(0, 3).Draw(t, "field") == 0 {
			r[0].Key = metav1.ObjectNameField
			r[0].Values[0] = "0"
			return v1.NodeSelectorTerm{MatchFields: r}
		}
		return v1.NodeSelectorTerm{MatchExpressions: r}
	})
	affinity = rapid.Custom(func(t *rapid.T) *v1.NodeAffinity {
		a := &v1.NodeAffinity{}
		if rapid.Bool().Draw(t, "required") {
			terms := rapid.SliceOfN(term, 1, 2).Draw(t, "terms")
			a.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{NodeSelectorTerms: terms}
		}
		for range rapid.IntRange(0, 2).Draw(t, "preferred") {
			a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
				v1.PreferredSchedulingTerm{Weight: rapid.Int32Range(1, 3).Draw(t, "weight"), Preference: term.Draw(t, "term")})
		}
		return a
	})
)

func podOf(set map[string]string, a *v1.NodeAffinity) *object.Pod {
	return &object.Pod{
		RequiredNodes:  match.NewNodeSelector(set, a.RequiredDuringSchedulingIgnoredDuringExecution),
		PreferredNodes: match.NewPreferredNodes(a.PreferredDuringSchedulingIgnoredDuringExecution),
	}
}

func drawNodes(t *rapid.T) []*object.Node {
	var nodes []*object.Node
	for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
		nodes = append(nodes, &object.Node{Name: fmt.Sprint(i), Labels: map[string]string{"zone": zone.Draw(t, "zone")}})
	}
	return nodes
}

func apiNode(n *object.Node) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}
}

func build(t plugintest.Fatal, added *v1.NodeAffinity) framework.Plugin {
	t.Helper()
	pl, err := New(&config.NodeAffinityArgs{AddedAffinity: added})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return pl
}

// oracle is what the pod and the profile ask of nodes, as the library that
// kube-scheduler builds on understands it.
type oracle struct {
	pod                        nodeaffinity.RequiredNodeAffinity
	added                      *nodeaffinity.NodeSelector
	preferred, addedPreference *nodeaffinity.PreferredSchedulingTerms
}

func newOracle(set map[string]string, a, added *v1.NodeAffinity) (o oracle, err error) {
	o.pod = nodeaffinity.GetRequiredNodeAffinity(&v1.Pod{Spec: v1.PodSpec{NodeSelector: set, Affinity: &v1.Affinity{NodeAffinity: a}}})
	if o.preferred, err = nodeaffinity.NewPreferredSchedulingTerms(a.PreferredDuringSchedulingIgnoredDuringExecution); err != nil {
		return o, err
	}
	o.addedPreference, err = nodeaffinity.NewPreferredSchedulingTerms(added.PreferredDuringSchedulingIgnoredDuringExecution)
	if required := added.RequiredDuringSchedulingIgnoredDuringExecution; required != nil && err == nil {
		o.added, err = nodeaffinity.NewNodeSelector(required)
	}
	return o, err
}

func (o oracle) blocks(n *v1.Node) string {
	if o.added != nil && !o.added.Match(n) {
		return blockedByConfig
	}
	if ok, _ := o.pod.Match(n); !ok {
		return blockedByPod
	}
	return ""
}

// Verdicts and scores are those of component-helpers, and each node that fits is among
// the named ones.
func TestAsComponentHelpers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := rapid.MapOfN(rapid.Just("zone"), zone, 0, 1).Draw(t, "set")
		a, added := affinity.Draw(t, "affinity"), affinity.Draw(t, "added")
		o, err := newOracle(set, a, added)
		if err != nil {
			t.Skip("terms that do not parse have tests of their own")
		}
		pl, nodes := build(t, added), drawNodes(t)
		got := plugintest.Ask(t, pl, plugintest.Table(nodes...), podOf(set, a))
		for _, n := range nodes {
			if want := o.blocks(apiNode(n)); got.Blocked[n.Name] != want {
				t.Fatalf("%s %v: got %q, want %q", n.Name, n.Labels, got.Blocked[n.Name], want)
			}
			if want := o.preferred.Score(apiNode(n)) + o.addedPreference.Score(apiNode(n)); got.Scores[n.Name] != want {
				t.Fatalf("%s %v: score %d, want %d", n.Name, n.Labels, got.Scores[n.Name], want)
			}
			if got.Named != nil && o.blocks(apiNode(n)) == "" && !slices.Contains(got.Named, n.Name) {
				t.Fatalf("%s fits and is not among %v", n.Name, got.Named)
			}
		}
	})
}

// Pods of equal signature get equal verdicts and scores.
func TestEqualPartsEqualAnswers(t *testing.T) {
	draw := func(t *rapid.T, label string) *object.Pod {
		set := rapid.MapOfN(rapid.Just("zone"), rapid.Just("a"), 0, 1).Draw(t, "set")
		return podOf(set, affinity.Draw(t, label))
	}
	rapid.Check(t, func(t *rapid.T) {
		pl, a, b := build(t, nil), draw(t, "a"), draw(t, "b")
		if string(pl.Sign(nil, nil, a)) != string(pl.Sign(nil, nil, b)) {
			return
		}
		tb := plugintest.Table(drawNodes(t)...)
		x, y := plugintest.Ask(t, pl, tb, a), plugintest.Ask(t, pl, tb, b)
		if x.Rejected != y.Rejected || !slices.Equal(x.Named, y.Named) || !maps.Equal(x.Blocked, y.Blocked) || !maps.Equal(x.Scores, y.Scores) {
			t.Fatalf("signature %q: %v and %v", string(pl.Sign(nil, nil, a)), x, y)
		}
	})
}

// Required terms, preferred terms, both and none have signatures that differ.
func TestPartTellsRequiredFromPreferred(t *testing.T) {
	terms := []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: v1.NodeSelectorOpExists}}}}
	required := &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: terms}}
	preferred := &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{Weight: 1, Preference: terms[0]}}}
	both := &v1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  required.RequiredDuringSchedulingIgnoredDuringExecution,
		PreferredDuringSchedulingIgnoredDuringExecution: preferred.PreferredDuringSchedulingIgnoredDuringExecution,
	}
	seen := map[string]bool{}
	for _, p := range []*object.Pod{{}, podOf(nil, required), podOf(nil, preferred), podOf(nil, both)} {
		signature := string(build(t, nil).Sign(nil, nil, p))
		if seen[signature] {
			t.Errorf("signature %q twice", signature)
		}
		seen[signature] = true
	}
}

func named(names ...string) v1.NodeSelectorTerm {
	var t v1.NodeSelectorTerm
	for _, n := range names {
		t.MatchFields = append(t.MatchFields, v1.NodeSelectorRequirement{
			Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{n},
		})
	}
	return t
}

func required(terms ...v1.NodeSelectorTerm) *v1.NodeAffinity {
	return &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: terms}}
}

// PreFilter skips a pod that asks for nothing, names the nodes that the terms name, and
// rejects names in conflict.
func TestPreFilter(t *testing.T) {
	added := required(v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: v1.NodeSelectorOpExists}}})
	for _, c := range []struct {
		name     string
		added    *v1.NodeAffinity
		pod      *object.Pod
		skip     bool
		nodes    []string
		rejected string
	}{
		{name: "nothing asked", pod: &object.Pod{}, skip: true},
		{name: "the profile asks", added: added, pod: &object.Pod{}},
		{name: "a label", pod: podOf(map[string]string{"zone": "a"}, &v1.NodeAffinity{})},
		{name: "names", pod: podOf(nil, required(named("b"), named("a"))), nodes: []string{"a", "b"}},
		{name: "conflict", pod: podOf(nil, required(named("a", "b"))), rejected: "pod affinity terms conflict"},
		{name: "no terms", pod: podOf(nil, required())},
	} {
		t.Run(c.name, func(t *testing.T) {
			pl := build(t, c.added)
			got := pl.PreFilter(table.New(), c.pod)
			rejected := ""
			if got.Status != nil {
				rejected = strings.Join(got.Status.Reasons, ", ")
			}
			if got.Skip != c.skip || !slices.Equal(got.NodeNames, c.nodes) || rejected != c.rejected {
				t.Errorf("got %+v", got)
			}
			if got.NodeNames != nil && len(got.NodeNames) == 0 {
				t.Error("no nodes at all must be a rejection")
			}
		})
	}
}

// A preferred term that does not parse is an error for the pod, and a bad added
// affinity is refused.
func TestPreferredTermsThatDoNotParseFailScoring(t *testing.T) {
	bad := v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: "Near"}}}
	a := &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{Weight: 1, Preference: bad}}}
	got := plugintest.Ask(t, build(t, nil), plugintest.Table(&object.Node{Name: "a"}), podOf(nil, a)).Rejected
	if !strings.HasPrefix(got, "Error: ") || !strings.Contains(got, `"Near"`) {
		t.Errorf("got %q", got)
	}
	for _, added := range []*v1.NodeAffinity{a, required(bad)} {
		if _, err := New(&config.NodeAffinityArgs{AddedAffinity: added}); err == nil || !strings.HasPrefix(err.Error(), "addedAffinity.") {
			t.Errorf("got error %v", err)
		}
	}
}

// Scores are stretched from zero and the most to 0 and 100, cut off.
func TestNormalize(t *testing.T) {
	pl := build(t, nil)
	for _, c := range []struct{ raw, least, most, want int64 }{
		{0, 0, 0, 0}, {5, 5, 5, 100}, {1, 0, 3, 33}, {2, 0, 3, 66}, {0, 0, 3, 0},
	} {
		if got := pl.NormalizeScore(c.raw, c.least, c.most); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}

// A node event that lets the pod in queues it, and no other label event.
func TestQueueingHints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		added := affinity.Draw(t, "added")
		pl, err := New(&config.NodeAffinityArgs{AddedAffinity: added})
		if err != nil {
			t.Skip("added terms must parse")
		}
		pod := podOf(nil, affinity.Draw(t, "affinity"))
		nodes := drawNodes(t)
		old, now := &object.Node{Name: "0", Labels: nodes[0].Labels}, &object.Node{Name: "0", Labels: nodes[len(nodes)-1].Labels}
		fits := func(n *object.Node) bool {
			return plugintest.Ask(t, pl, plugintest.Table(n), pod).Blocked[n.Name] == ""
		}
		update := framework.Event{Resource: framework.Node, ActionType: framework.UpdateNodeLabel, OldNode: old, NewNode: now}
		if got := plugintest.Queues(pl, pod, update); got != (!fits(old) && fits(now)) {
			t.Fatalf("%v becomes %v: got %v", old.Labels, now.Labels, got)
		}
		add := framework.Event{Resource: framework.Node, ActionType: framework.Add, NewNode: now}
		if got := plugintest.Queues(pl, pod, add); got != fits(now) {
			t.Fatalf("%v comes: got %v", now.Labels, got)
		}
	})
}

// Filter and Score allocate nothing.
func TestKernelsAllocateNothing(t *testing.T) {
	pl := build(t, nil)
	in := &framework.Input{
		Table: plugintest.Table(&object.Node{Name: "a", Labels: map[string]string{"zone": "a"}}, &object.Node{Name: "b"}),
		Pod:   podOf(map[string]string{"zone": "a"}, required(named("a"), named("b"))),
	}
	verdicts, scores := make([]framework.Verdict, 2), make([]int64, 2)
	if n := testing.AllocsPerRun(10, func() {
		pl.Filter(in, in.Table.All()[0:2], verdicts)
		pl.Score(in, in.Table.All()[0:2], scores)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

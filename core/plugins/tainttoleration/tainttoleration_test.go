package tainttoleration

import (
	"fmt"
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"
	corev1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

const blocked = "UnschedulableAndUnresolvable: node(s) had untolerated taint(s)"

var (
	effect   = rapid.SampledFrom([]v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute, v1.TaintEffectPreferNoSchedule})
	word     = rapid.SampledFrom([]string{"1", "2"})
	taintKey = rapid.SampledFrom([]string{"gpu", "disk"})
	taint    = rapid.Custom(func(t *rapid.T) v1.Taint {
		return v1.Taint{Key: taintKey.Draw(t, "key"), Value: word.Draw(t, "value"), Effect: effect.Draw(t, "effect")}
	})
	toleration = rapid.Custom(func(t *rapid.T) v1.Toleration {
		return v1.Toleration{
			Key:      rapid.OneOf(taintKey, rapid.Just("")).Draw(t, "key"),
			Operator: rapid.SampledFrom([]v1.TolerationOperator{"", v1.TolerationOpExists, v1.TolerationOpLt}).Draw(t, "operator"),
			Value:    word.Draw(t, "value"),
			Effect:   rapid.OneOf(effect, rapid.Just(v1.TaintEffect(""))).Draw(t, "effect"),
		}
	})
)

func drawPod(t *rapid.T, label string) *object.Pod {
	return &object.Pod{Tolerations: match.NewTolerations(rapid.SliceOfN(toleration, 0, 2).Draw(t, label))}
}

func drawNodes(t *rapid.T) []*object.Node {
	var nodes []*object.Node
	for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
		nodes = append(nodes, &object.Node{Name: fmt.Sprint(i), Taints: rapid.SliceOfN(taint, 0, 3).Draw(t, "taints")})
	}
	return nodes
}

// The filter and the scores are those of the library that kube-scheduler
// builds on.
func TestAsComponentHelpers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, pod := drawNodes(t), drawPod(t, "tolerations")
		comparisons := rapid.Bool().Draw(t, "comparisons")
		pl := New(feature.Features{TaintTolerationComparisonOperators: comparisons})
		got := plugintest.Ask(t, pl, plugintest.Table(nodes...), pod)
		counts, most := map[string]int64{}, int64(0)
		for _, n := range nodes {
			hard := func(t *v1.Taint) bool { return t.Effect != v1.TaintEffectPreferNoSchedule }
			_, keeps := corev1.FindMatchingUntoleratedTaint(klog.Logger{}, n.Taints, pod.Tolerations.List, hard, comparisons)
			if want := map[bool]string{true: blocked}[keeps]; got.Blocked[n.Name] != want {
				t.Fatalf("%v: got %q, want %q", n.Taints, got.Blocked[n.Name], want)
			}
			counts[n.Name] = 0
			for i := range n.Taints {
				if !hard(&n.Taints[i]) && !corev1.TolerationsTolerateTaint(klog.Logger{}, pod.Tolerations.List, &n.Taints[i], comparisons) {
					counts[n.Name]++
				}
			}
			most = max(most, counts[n.Name])
		}
		if !maps.Equal(got.Scores, counts) {
			t.Fatalf("scores %v, want %v", got.Scores, counts)
		}
		got.Blocked = nil // all nodes are scored
		for name, score := range got.Normalized(pl) {
			want := int64(100)
			if most > 0 {
				want = 100 - 100*counts[name]/most
			}
			if score != want {
				t.Fatalf("node %s: normalised %d, want %d", name, score, want)
			}
		}
	})
}

// More lists of taints than answers are kept of at a time are told apart.
func TestManyListsOfTaints(t *testing.T) {
	var nodes []*object.Node
	for i := range 200 {
		effect := []v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule}[i/100]
		nodes = append(nodes, &object.Node{Name: fmt.Sprint(i), Taints: []v1.Taint{{Key: fmt.Sprint(i % 100), Effect: effect}}})
	}
	pod := &object.Pod{Tolerations: match.NewTolerations([]v1.Toleration{{Key: "7", Operator: v1.TolerationOpExists}})}
	got := plugintest.Ask(t, New(feature.Features{}), plugintest.Table(nodes...), pod)
	for i, n := range nodes {
		tolerated := n.Taints[0].Key == "7"
		if blocked := got.Blocked[n.Name] != ""; blocked != (i < 100 && !tolerated) {
			t.Errorf("node %s is blocked: %v", n.Name, blocked)
		}
		if soft := got.Scores[n.Name] != 0; soft != (i >= 100 && !tolerated) {
			t.Errorf("node %s has score %d", n.Name, got.Scores[n.Name])
		}
	}
}

// Pods of equal signature get equal verdicts and scores, also on nodes that change, until
// taints come that the others had not. Equal tolerations have equal signatures.
func TestEqualSignaturesEqualAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, pl := drawPod(t, "a"), drawPod(t, "b"), New(feature.Features{})
		tb := plugintest.Table(drawNodes(t)...)
		if rapid.IntRange(0, 3).Draw(t, "others") == 0 {
			twice := taint.Draw(t, "twice")
			tb.SetNode(&object.Node{Name: "twice", Taints: []v1.Taint{twice, twice}})
		}
		same := string(pl.Sign(nil, tb, a)) == string(pl.Sign(nil, tb, b))
		if a.Tolerations.Key == b.Tolerations.Key && !same {
			t.Fatal("pods of equal tolerations are told apart")
		}
		for range 3 {
			x, y := plugintest.Ask(t, pl, tb, a), plugintest.Ask(t, pl, tb, b)
			if same && (!maps.Equal(x.Blocked, y.Blocked) || !maps.Equal(x.Scores, y.Scores)) {
				t.Fatalf("%v and %v", x, y)
			}
			signed, _ := pl.SignRevision(tb, a)
			for _, n := range drawNodes(t) {
				tb.SetNode(n)
			}
			if revision, _ := pl.SignRevision(tb, a); revision != signed {
				return
			}
		}
	})
}

// A node event that lets the pod in queues it.
func TestQueueingHints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pl, pod := New(feature.Features{}), drawPod(t, "tolerations")
		nodes := drawNodes(t)
		old, now := nodes[0], nodes[len(nodes)-1]
		fits := func(n *object.Node) bool {
			return plugintest.Ask(t, pl, plugintest.Table(n), pod).Blocked[n.Name] == ""
		}
		update := framework.Event{Resource: framework.Node, ActionType: framework.UpdateNodeTaint, OldNode: old, NewNode: now}
		if got := plugintest.Queues(pl, pod, update); got != (!fits(old) && fits(now)) {
			t.Fatalf("%v becomes %v: got %v", old.Taints, now.Taints, got)
		}
		add := framework.Event{Resource: framework.Node, ActionType: framework.Add, NewNode: now}
		if got := plugintest.Queues(pl, pod, add); got != fits(now) {
			t.Fatalf("%v comes: got %v", now.Taints, got)
		}
	})
	e := framework.Event{Resource: framework.TargetPod, ActionType: framework.UpdatePodToleration, NewPod: &object.Pod{}}
	if !plugintest.Queues(New(feature.Features{}), &object.Pod{}, e) {
		t.Error("another toleration does not queue the pod")
	}
}

// Filter and Score allocate nothing.
func TestKernelsAllocateNothing(t *testing.T) {
	pl := New(feature.Features{})
	tb := plugintest.Table(&object.Node{Name: "a", Taints: []v1.Taint{{Key: "gpu", Effect: v1.TaintEffectNoSchedule}}}, &object.Node{Name: "b"})
	in := &framework.Input{Table: tb, Pod: &object.Pod{Tolerations: match.NewTolerations([]v1.Toleration{{Key: "x"}})}}
	verdicts, scores := make([]framework.Verdict, 2), make([]int64, 2)
	if n := testing.AllocsPerRun(10, func() {
		pl.Filter(in, in.Table.All()[0:2], verdicts)
		pl.Score(in, in.Table.All()[0:2], scores)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

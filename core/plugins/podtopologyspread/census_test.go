package podtopologyspread

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// picky is a pod whose constraints honor taints and affinity.
func picky(tolerates string, terms ...string) *object.Pod {
	honor := v1.NodeInclusionPolicyHonor
	p := podWith(web(v1.LabelTopologyZone, func(c *v1.TopologySpreadConstraint) { c.NodeTaintsPolicy = &honor }))
	if tolerates != "" {
		p.Tolerations = match.NewTolerations([]v1.Toleration{{Key: tolerates, Operator: v1.TolerationOpExists}})
	}
	var required v1.NodeSelector
	for _, disk := range terms {
		required.NodeSelectorTerms = append(required.NodeSelectorTerms, v1.NodeSelectorTerm{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: "disk", Operator: v1.NodeSelectorOpIn, Values: []string{disk}}}})
	}
	if len(terms) > 0 {
		p.RequiredNodes = match.NewNodeSelector(nil, &required)
	}
	return p
}

// Which nodes count follows the nodes and their taints: for a class that is kept, and for
// one that finds what others have found out.
func TestNodesThatCount(t *testing.T) {
	p, tb := newPlugin(t, nil), table.New()
	node := func(i int, disk string, taints ...v1.Taint) {
		n := nodeIn(fmt.Sprint("n", i), []string{"a", "a", "b", "b", "c", "c"}[i])
		n.Labels["disk"] = disk
		n.Taints = taints
		tb.SetNode(n)
	}
	taint := func(key string, effect v1.TaintEffect) v1.Taint { return v1.Taint{Key: key, Effect: effect} }
	for i := range 6 {
		node(i, []string{"ssd", "hdd", ""}[i%3])
		placeWebPods(tb, fmt.Sprint("n", i), i/2)
	}
	pods := []*object.Pod{picky(""), picky("x"), picky("y"), picky("", "ssd", "hdd"), picky("x", "hdd", "ssd"), picky("y", "ssd"), picky("", "none")}
	var kept []any
	for _, pod := range pods {
		kept = append(kept, p.PreFilter(tb, pod).State)
	}
	compare := func(step string) {
		t.Helper()
		for i, pod := range pods {
			want := verdictsOf(newPlugin(t, nil), tb, pod, nil)
			for _, got := range [][]framework.Verdict{verdictsOf(p, tb, pod, kept[i]), verdictsOf(p, tb, pod, nil)} {
				if !slices.Equal(got, want) {
					t.Errorf("%s, pod %d: %v, afresh %v", step, i, got, want)
				}
			}
			want = naiveVerdicts(tb, pod)
			if got := verdictsOf(p, tb, pod, kept[i]); !slices.Equal(got, want) {
				t.Errorf("%s, pod %d: %v, a look at all pods says %v", step, i, got, want)
			}
		}
	}
	compare("without taints")
	node(0, "ssd", taint("x", v1.TaintEffectNoSchedule))
	compare("a taint came")
	node(1, "hdd", taint("x", v1.TaintEffectNoSchedule))
	compare("no node in zone a counts")
	node(2, "", taint("y", v1.TaintEffectPreferNoSchedule))
	compare("a taint that keeps nobody away")
	node(0, "ssd", taint("y", v1.TaintEffectNoExecute))
	compare("another taint came")
	node(1, "hdd")
	compare("a taint went")
	node(0, "ssd", taint("z", v1.TaintEffectNoSchedule))
	compare("a taint has the number of one that went")
	node(4, "ssd", taint("z", v1.TaintEffectNoSchedule), taint("z", v1.TaintEffectNoSchedule))
	compare("a taint twice")
	node(5, "hdd")
	compare("a label changed")
	tb.RemoveNode("n3")
	compare("a node went")
}

// verdictsOf is what the plugin says of all rows, by the state or by a new one.
func verdictsOf(p framework.Plugin, tb *table.Table, pod *object.Pod, state any) []framework.Verdict {
	if state == nil {
		state = p.PreFilter(tb, pod).State
		defer state.(framework.Releaser).Release()
	}
	in := &framework.Input{Table: tb, Pod: pod, State: state}
	sync(in)
	out, all := make([]int64, tb.Rows()), make([]framework.Verdict, tb.Rows())
	cells(in, tb.All(), out)
	for r, cell := range out {
		all[r] = verdict(in, cell)
	}
	return all
}

// naiveVerdicts counts for one hard constraint by zone, with a look at each pod.
func naiveVerdicts(tb *table.Table, pod *object.Pod) []framework.Verdict {
	zones := map[string]int{}
	for _, r := range tb.All() {
		n := tb.Node(r)
		if n == nil || !pod.RequiredNodes.Matches(n.Subject()) || !pod.Tolerations.Admits(n.Taints, false) {
			continue
		}
		zones[n.Labels[v1.LabelTopologyZone]] += len(tb.Pods(r))
	}
	least := 1 << 30
	for _, n := range zones { // any order: the least
		least = min(least, n)
	}
	all := make([]framework.Verdict, tb.Rows())
	for _, r := range tb.All() {
		if n := tb.Node(r); n != nil && zones[n.Labels[v1.LabelTopologyZone]]+1-least > 1 {
			all[r] = skewed
		}
	}
	return all
}

// A try counts pods on their way out, however many they are, and what it counted goes
// with it.
func TestTriesOfPodsOnTheirWayOut(t *testing.T) {
	for _, pods := range []int{10, 200} {
		p := newPlugin(t, nil)
		tb := plugintest.Table(nodeIn("n0", "a"), nodeIn("n1", "b"))
		pod := podWith(web(v1.LabelTopologyZone))
		synced, late := p.PreFilter(tb, pod).State, p.PreFilter(tb, pod).State
		verdictsOf(p, tb, pod, synced)
		mark := tb.Checkpoint()
		for i := range pods {
			tb.AddPod(&object.Pod{UID: types.UID(fmt.Sprint("t", i)), Namespace: "a", Labels: map[string]string{"app": "web"}, Terminating: true}, "n0")
		}
		if got := verdictsOf(p, tb, pod, synced); got[0] != skewed || got[1] != framework.Fits {
			t.Errorf("in a try of %d pods: %v", pods, got)
		}
		verdictsOf(p, tb, pod, late)
		tb.Undo(mark)
		for _, state := range []any{synced, late} {
			if got := verdictsOf(p, tb, pod, state); got[0] != framework.Fits || got[1] != framework.Fits {
				t.Errorf("after a try of %d pods: %v", pods, got)
			}
		}
	}
}

// By default nodes that lack the label count as one domain with those whose label is
// empty, and only these are scored by it.
func TestNodesWithoutTheLabel(t *testing.T) {
	p := newPlugin(t, nil)
	tb := plugintest.Table(nodeIn("named", "a"), nodeIn("empty", ""), nodeIn("lacks", "a"))
	lacks := nodeIn("lacks", "")
	delete(lacks.Labels, v1.LabelTopologyZone)
	tb.SetNode(lacks)
	tb.SelectorOwners().Set(&object.SelectorOwner{Kind: object.Service, Namespace: "a", Name: "web", Labels: map[string]string{"app": "web"}, Key: "app=web"})
	scores := func() map[string]int64 {
		return plugintest.Ask(t, p, tb, &object.Pod{Namespace: "a", Labels: map[string]string{"app": "web"}}).Scores
	}
	before := scores()
	placeWebPods(tb, "lacks", 3)
	if after := scores(); after["empty"] <= before["empty"] || after["named"] != before["named"] || after["lacks"] <= before["lacks"] {
		t.Errorf("before %v, with pods on the node that lacks the label %v", before, after)
	}
}

// Two constraints by one key that select the same pods count other nodes.
func TestConstraintsThatAskForOtherNodes(t *testing.T) {
	honor := v1.NodeInclusionPolicyHonor
	p, tainted := newPlugin(t, nil), nodeIn("n0", "a")
	tainted.Taints = []v1.Taint{{Key: "x", Effect: v1.TaintEffectNoSchedule}}
	tb := plugintest.Table(tainted, nodeIn("n1", "b"))
	placeWebPods(tb, "n0", 3)
	honors := web(v1.LabelTopologyZone, func(c *v1.TopologySpreadConstraint) { c.NodeTaintsPolicy = &honor })
	for i, list := range [][]v1.TopologySpreadConstraint{{honors}, {honors, web(v1.LabelTopologyZone)}} {
		if got := verdictsOf(p, tb, podWith(list...), nil)[0]; (got == skewed) != (i == 1) {
			t.Errorf("%d constraints: %d", len(list), got)
		}
	}
}

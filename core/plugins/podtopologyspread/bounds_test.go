package podtopologyspread

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// Domains, locations and hostnames that come and go without end leave no more
// behind than there were at once.
func TestDomainsWithoutEnd(t *testing.T) {
	const nodes = 20
	for name, when := range map[string]func(*v1.TopologySpreadConstraint){"required": func(*v1.TopologySpreadConstraint) {}, "preferred": anyway} {
		p := newPlugin(t, nil)
		tb := table.New()
		pod := podWith(web(v1.LabelTopologyZone, when), web("rack", when), web(v1.LabelHostname, when))
		prepared := p.PreFilter(tb, pod)
		state := prepared.State
		if prepared.Skip {
			state = p.PreScore(tb, pod).State
		}
		c := state.(*counts)
		in := &framework.Input{Table: tb, Pod: pod, State: c}
		for i := range 5000 {
			n := nodeIn(fmt.Sprint("n", i), fmt.Sprint("zone-", i))
			if i%7 == 0 {
				n.Labels[v1.LabelHostname] = "shared"
			}
			tb.SetNode(n)
			if placeWebPods(tb, n.Name, 1); i >= nodes {
				old := fmt.Sprint("n", i-nodes)
				tb.RemovePod(tb.Pods(rowOf(tb, old))[0].Pod.UID)
				tb.RemoveNode(old)
			}
			if i%3 == 0 { // now and then, so that rows change hands in between
				sync(in)
			}
		}
		sync(in)
		for i := range c.columns {
			col := &c.columns[i]
			if n := col.Len(); n > 2*nodes+3 || !col.PerNode && col.Held() > nodes+1 || len(col.Sums) > 2*nodes+3 {
				t.Errorf("%s: %d domains by %s, %d of them with nodes, %d numbers of pods; there are %d nodes",
					name, n, col.Label, col.Held(), len(col.Sums), nodes)
			}
		}
		if s := c.census; s.layout.Len() > 2*nodes || s.layout.Held() > nodes || len(s.admitted) > 2*nodes {
			t.Errorf("%s: %d places, %d of them with nodes, %d rows; there are %d nodes", name, s.layout.Len(), s.layout.Held(), len(s.admitted), nodes)
		}
	}
}

func rowOf(tb *table.Table, node string) table.Row {
	r, _ := tb.Find(node)
	return r
}

// Thousands of topologies that no node has make one, until a node has them: the epoch is
// another then.
func TestTopologiesThatNoNodeHas(t *testing.T) {
	p, tb := newPlugin(t, nil), table.New()
	tb.SetNode(nodeIn("n", "a"))
	var list []v1.TopologySpreadConstraint
	for i := range 1000 {
		list = append(list, v1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: fmt.Sprint("key-", i), WhenUnsatisfiable: v1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(i % 10)}}})
	}
	pod := &object.Pod{Namespace: "a", Spread: match.NewSpread(list, nil)}
	topologies := func() (int, int) {
		c := p.PreFilter(tb, pod).State.(*counts)
		return len(c.census.layout.Topologies), len(c.columns)
	}
	if n, columns := topologies(); n != 1 || columns != 10 {
		t.Errorf("%d topologies and %d columns, want 1 and 10", n, columns)
	}
	if blocked := plugintest.Ask(t, p, tb, pod).Blocked["n"]; !strings.Contains(blocked, "missing required label") {
		t.Errorf("a node without the labels: %q", blocked)
	}
	before, n := p.Epoch(tb), nodeIn("n", "a")
	for i := range 1000 {
		n.Labels[fmt.Sprint("key-", i)] = "x"
	}
	tb.SetNode(n)
	if p.Epoch(tb) == before {
		t.Error("the epoch is that of before the node had the labels")
	}
	if n, columns := topologies(); n != 1000 || columns != 1000 {
		t.Errorf("%d topologies and %d columns, want 1000 of each", n, columns)
	}
	if blocked := plugintest.Ask(t, p, tb, pod).Blocked["n"]; blocked != "" {
		t.Errorf("a node with the labels: %q", blocked)
	}
}

package podtopologyspread

import (
	"fmt"
	"math"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

func web(key string, change ...func(*v1.TopologySpreadConstraint)) v1.TopologySpreadConstraint {
	c := v1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: 1, WhenUnsatisfiable: v1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	for _, f := range change {
		f(&c)
	}
	return c
}

func anyway(c *v1.TopologySpreadConstraint) { c.WhenUnsatisfiable = v1.ScheduleAnyway }

func podWith(list ...v1.TopologySpreadConstraint) *object.Pod {
	labels := map[string]string{"app": "web"}
	return &object.Pod{UID: "new", Namespace: "a", Name: "new", Labels: labels, Spread: match.NewSpread(list, labels)}
}

func nodeIn(name, zone string) *object.Node {
	return &object.Node{Name: name, Labels: map[string]string{v1.LabelHostname: name, v1.LabelTopologyZone: zone, "rack": name}}
}

// placeWebPods places that many web pods on the node.
func placeWebPods(t *table.Table, node string, n int) {
	for range n {
		uid := types.UID(fmt.Sprint("web-", t.PodChangeCount()))
		t.AddPod(&object.Pod{UID: uid, Namespace: "a", Labels: map[string]string{"app": "web"}}, node)
	}
}

func newPlugin(t *testing.T, args *configv1.PodTopologySpreadArgs) framework.Plugin {
	t.Helper()
	p, err := New(args, feature.Features{MatchLabelKeysInPodTopologySpread: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// verdicts has, by node, why not.
func verdicts(t *testing.T, p framework.Plugin, tb *table.Table, pod *object.Pod) map[string]string {
	t.Helper()
	in := &framework.Input{Table: tb, Pod: pod, State: p.PreFilter(tb, pod).State}
	p.CellFilter.Sync(in)
	out := make([]int64, tb.Rows())
	p.CellFilter.Cells(in, in.Table.All(), out)
	said := map[string]string{}
	for r, cell := range out {
		if n := tb.Node(table.Row(r)); n != nil {
			said[n.Name] = ""
			if v := p.CellFilter.Filter(in, cell); v != framework.Fits {
				said[n.Name] = strings.Join(p.Explain(in, table.Row(r), v).Reasons, ", ")
			}
		}
	}
	return said
}

// A node gets the reason of the first constraint that it breaks.
func TestTheFirstConstraintSpeaks(t *testing.T) {
	p := newPlugin(t, nil)
	bare := &object.Node{Name: "bare", Labels: map[string]string{v1.LabelTopologyZone: "full"}}
	tb := plugintest.Table(nodeIn("n1", "full"), nodeIn("n2", "empty"), bare)
	placeWebPods(tb, "n1", 2)
	zone, host := web(v1.LabelTopologyZone), web(v1.LabelHostname)
	if got := verdicts(t, p, tb, podWith(zone, host)); got["bare"] != reasonSkew || got["n1"] != reasonSkew || got["n2"] != "" {
		t.Errorf("zone first: %q", got)
	}
	if got := verdicts(t, p, tb, podWith(host, zone)); got["bare"] != reasonLabel || got["n1"] != reasonSkew || got["n2"] != "" {
		t.Errorf("host first: %q", got)
	}
}

// With fewer domains than minDomains the least count is zero.
func TestMinDomains(t *testing.T) {
	p := newPlugin(t, nil)
	tb := plugintest.Table(nodeIn("n1", "a"), nodeIn("n2", "b"))
	placeWebPods(tb, "n1", 1)
	placeWebPods(tb, "n2", 1)
	for domains, want := range map[int32]string{1: "", 2: "", 3: reasonSkew} {
		c := web(v1.LabelTopologyZone, func(c *v1.TopologySpreadConstraint) { c.MinDomains = &domains })
		if got := verdicts(t, p, tb, podWith(c)); got["n1"] != want {
			t.Errorf("minDomains %d: %q, want %q", domains, got["n1"], want)
		}
	}
}

// A selector that does not parse is an error, and says which constraints it is of.
func TestSelectorsThatDoNotParse(t *testing.T) {
	p := newPlugin(t, nil)
	tb := plugintest.Table(nodeIn("n1", "a"))
	broken := func(c *v1.TopologySpreadConstraint) {
		c.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	}
	s := p.PreFilter(tb, podWith(web("rack", broken))).Status
	if s == nil || s.Code != decision.Error ||
		s.Err.Error() != `get constraints from pod: obtaining pod's hard topology spread constraints: "Near" is not a valid label selector operator` {
		t.Errorf("hard: %+v", s)
	}
	s = p.PreScore(tb, podWith(web("rack", broken, anyway))).Status
	if s == nil || s.Code != decision.Error ||
		s.Err.Error() != `calculating preScoreState: obtaining pod's soft topology spread constraints: "Near" is not a valid label selector operator` {
		t.Errorf("soft: %+v", s)
	}
}

// Arguments that are wrong are refused with their field.
func TestArguments(t *testing.T) {
	bad := func(field string, args configv1.PodTopologySpreadArgs) {
		t.Helper()
		if _, err := New(&args, feature.Features{MatchLabelKeysInPodTopologySpread: true}); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	list := []v1.TopologySpreadConstraint{web("zone", func(c *v1.TopologySpreadConstraint) { c.LabelSelector = nil })}
	bad("defaultingType", configv1.PodTopologySpreadArgs{DefaultingType: "Other"})
	bad("defaultingType", configv1.PodTopologySpreadArgs{DefaultingType: configv1.SystemDefaulting, DefaultConstraints: list})
	bad("defaultConstraints[0].labelSelector", configv1.PodTopologySpreadArgs{DefaultingType: configv1.ListDefaulting,
		DefaultConstraints: []v1.TopologySpreadConstraint{web("zone")}})
	bad("defaultConstraints[0].maxSkew", configv1.PodTopologySpreadArgs{DefaultingType: configv1.ListDefaulting,
		DefaultConstraints: []v1.TopologySpreadConstraint{{TopologyKey: "zone"}}})
	bad("defaultConstraints[0].topologyKey", configv1.PodTopologySpreadArgs{DefaultingType: configv1.ListDefaulting,
		DefaultConstraints: []v1.TopologySpreadConstraint{{MaxSkew: 1}}})
}

// TestDomainsThatGoLeaveNothing: nodes with ever new names and labels do not
// make the counts grow.
func TestDomainsThatGoLeaveNothing(t *testing.T) {
	p := newPlugin(t, nil)
	tb := plugintest.Table(nodeIn("stays", "a"))
	all := []*counts{}
	for _, pod := range []*object.Pod{podWith(web(v1.LabelTopologyZone)), podWith(web("rack"), web(v1.LabelTopologyZone), web(v1.LabelHostname))} {
		all = append(all, p.PreFilter(tb, pod).State.(*counts))
	}
	sync := func() {
		for _, c := range all {
			c.sync(tb)
		}
	}
	for i := range 2000 {
		pair := []string{fmt.Sprint("node-", i, "-x"), fmt.Sprint("node-", i, "-y")}
		for _, name := range pair {
			tb.SetNode(nodeIn(name, fmt.Sprint("zone-", i%700)))
			placeWebPods(tb, name, i%3)
		}
		sync()
		for _, name := range pair {
			r, _ := tb.Find(name)
			for len(tb.Pods(r)) > 0 {
				tb.RemovePod(tb.Pods(r)[0].Pod.UID)
			}
			tb.RemoveNode(name)
		}
		if i%5 == 0 {
			sync()
		}
	}
	sync()
	for _, c := range all {
		if l := c.census.layout; l.Len() > 8 || l.Held() != 1 {
			t.Errorf("room for %d places, %d of them in use", l.Len(), l.Held())
		}
		for i := range c.columns {
			if col := &c.columns[i]; col.Len() > 8 || col.Held() > 2 || col.eligible.domains != 1 || col.leastPods(1) != 0 {
				t.Errorf("%s: room for %d domains, %d of them in use; least %+v in %d", col.Label, col.Len(), col.Held(), col.least, col.eligible.domains)
			}
		}
	}
}

// TestAThousandConstraints: neither many keys that no node has, nor many that
// each node has, nor one key many times takes room by the product.
func TestAThousandConstraints(t *testing.T) {
	p := newPlugin(t, nil)
	tb := table.New()
	for i := range 300 {
		tb.SetNode(nodeIn(fmt.Sprint("n", i), fmt.Sprint(i%3)))
	}
	var keys, hosts []v1.TopologySpreadConstraint
	for i := range 1000 {
		keys = append(keys, web(fmt.Sprint("key-", i)))
		hosts = append(hosts, web(v1.LabelHostname), web(v1.LabelHostname, anyway))
	}
	for node, why := range verdicts(t, p, tb, podWith(keys...)) {
		if why != reasonLabel {
			t.Fatalf("%s: %q", node, why)
		}
	}
	c := p.PreFilter(tb, podWith(keys...)).State.(*counts)
	if c.sync(tb); c.census.layout.Len() != 1 {
		t.Errorf("%d places", c.census.layout.Len())
	}
	placeWebPods(tb, "n7", 1)
	for node, why := range verdicts(t, p, tb, podWith(hosts...)) {
		if (why == "") != (node != "n7") {
			t.Fatalf("%s: %q", node, why)
		}
	}
	if len(p.PreScore(tb, podWith(hosts...)).State.(*counts).columns) != 1 {
		t.Error("constraints that select the same are counted more than once")
	}
}

// TestHostsAreCells: with a domain a node there are as many cells as numbers
// of pods, not as nodes.
func TestHostsAreCells(t *testing.T) {
	p := newPlugin(t, nil)
	tb := table.New()
	for i := range 1000 {
		tb.SetNode(nodeIn(fmt.Sprint("n", i), "a"))
		placeWebPods(tb, fmt.Sprint("n", i), i%4)
	}
	for _, pod := range []*object.Pod{podWith(web(v1.LabelHostname)), podWith(web(v1.LabelHostname, anyway)), podWith(web("rack")), podWith(web("rack", anyway))} {
		in := &framework.Input{Table: tb, Pod: pod, State: p.PreFilter(tb, pod).State}
		if in.State == nil {
			in.State = p.PreScore(tb, pod).State
		}
		sync(in)
		out := make([]int64, tb.Rows())
		cells(in, in.Table.All(), out)
		distinct := map[int64]bool{}
		for _, cell := range out {
			distinct[cell] = true
		}
		if len(distinct) != 4 {
			t.Errorf("%d cells, want 4", len(distinct))
		}
	}
}

// A pod without a selector owner has no part in its signature, and pods of one Service
// have the same.
func TestSignLeavesOutPodsWithoutSelectorOwner(t *testing.T) {
	p := newPlugin(t, nil)
	tb := plugintest.Table(nodeIn("n1", "a"))
	plain := func(labels map[string]string) *object.Pod { return &object.Pod{Namespace: "a", Labels: labels} }
	if a, b := string(p.Sign(nil, tb, plain(map[string]string{"app": "web"}))), string(p.Sign(nil, tb, plain(nil))); a != "" || b != "" {
		t.Errorf("parts %q and %q of pods without selector owner", a, b)
	}
	tb.SelectorOwners().Set(&object.SelectorOwner{Kind: object.Service, Namespace: "a", Name: "web", Labels: map[string]string{"app": "web"}, Key: "app=web"})
	first, second := plain(map[string]string{"app": "web", "pod": "1"}), plain(map[string]string{"app": "web", "pod": "2"})
	if a, b := string(p.Sign(nil, tb, first)), string(p.Sign(nil, tb, second)); a == "" || a != b {
		t.Errorf("parts %q and %q of pods of one Service", a, b)
	}
}

// TestPartSaysWhoMatchesItself: of two pods of one controller, one may have
// lost the label by which it is selected.
func TestPartSaysWhoMatchesItself(t *testing.T) {
	p := newPlugin(t, &configv1.PodTopologySpreadArgs{DefaultingType: configv1.ListDefaulting,
		DefaultConstraints: []v1.TopologySpreadConstraint{{TopologyKey: "rack", MaxSkew: 1, WhenUnsatisfiable: v1.DoNotSchedule}}})
	tb := plugintest.Table(nodeIn("n1", "a"))
	controller := object.Controller{Kind: object.ReplicationController, Name: "web"}
	tb.SelectorOwners().Set(&object.SelectorOwner{Kind: controller.Kind, Namespace: "a", Name: "web", Labels: map[string]string{"app": "web"}, Key: "app=web"})
	in := &object.Pod{Namespace: "a", Labels: map[string]string{"app": "web"}, Controller: controller}
	out := &object.Pod{Namespace: "a", Labels: map[string]string{"app": "lost"}, Controller: controller}
	if string(p.Sign(nil, tb, in)) == string(p.Sign(nil, tb, out)) {
		t.Error("they have one part")
	}
	placeWebPods(tb, "n1", 1)
	if a, b := verdicts(t, p, tb, in)["n1"], verdicts(t, p, tb, out)["n1"]; a != "" || b != "" {
		t.Errorf("one node is as full as the emptiest: %q, %q", a, b)
	}
	tb.SetNode(nodeIn("n2", "a"))
	if a, b := verdicts(t, p, tb, in)["n1"], verdicts(t, p, tb, out)["n1"]; a != reasonSkew || b != "" {
		t.Errorf("%q for the one that counts, %q for the other", a, b)
	}
}

// The least number of pods is known after any steps, whenever it is asked for.
func TestTheLeastIsKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const domains = 5
		var col column
		col.Sums = make([]int64, int(domain.Unnamed)+domains)
		col.eligible = &eligible{nodes: make([]int32, len(col.Sums))}
		for d := range domains {
			col.eligible.nodes[int(domain.Unnamed)+d] = int32(rapid.IntRange(0, 2).Draw(t, "nodes"))
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			d := int(domain.Unnamed) + rapid.IntRange(0, domains-1).Draw(t, "domain")
			if before, n := col.Sums[d], int64(rapid.IntRange(-2, 3).Draw(t, "pods")); col.eligible.nodes[d] > 0 {
				col.Sums[d] += n
				col.least.move(before, before+n)
			}
			if rapid.Bool().Draw(t, "unasked") {
				continue
			}
			least := int64(math.MaxInt32)
			for d, n := range col.eligible.nodes {
				if n > 0 {
					least = min(least, col.Sums[d])
				}
			}
			if got := col.leastPods(0); got != least {
				t.Fatalf("least %d of %v on %v, want %d", got, col.Sums, col.eligible.nodes, least)
			}
		}
	})
}

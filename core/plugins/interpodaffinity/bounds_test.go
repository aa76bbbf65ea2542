package interpodaffinity

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Domains, locations and hostnames that come and go without end leave no more
// behind than there were at once.
func TestDomainsWithoutEnd(t *testing.T) {
	const nodes = 20
	p := mustNew(t, nil)
	tb := table.New()
	tb.SetNode(&object.Node{Name: "n0", Labels: map[string]string{v1.LabelHostname: "n0", v1.LabelTopologyZone: "n0"}})
	pending := pod("new", "web", "", away(v1.LabelTopologyZone, app("web")))
	pending.Affinity.AntiAffinity = append(pending.Affinity.AntiAffinity, pod("", "", "", away(v1.LabelHostname, app("db"))).Affinity.AntiAffinity...)
	c := p.PreFilter(tb, pending).State.(*counts)
	in := &framework.Input{Table: tb, Pod: pending, State: c}
	for i := range 5000 {
		name := fmt.Sprint("n", i)
		n := &object.Node{Name: name, Labels: map[string]string{v1.LabelHostname: name, v1.LabelTopologyZone: name}}
		if i%7 == 0 {
			n.Labels[v1.LabelHostname] = "shared"
		}
		tb.SetNode(n)
		tb.AddPod(pod(name, "web", "", nil), name)
		if i >= nodes {
			old := fmt.Sprint("n", i-nodes)
			tb.RemovePod(pod(old, "", "", nil).UID)
			tb.RemoveNode(old)
		}
		if i%3 == 0 { // now and then, so that rows change hands in between
			sync(in)
		}
	}
	sync(in)
	for _, topology := range c.layout.Topologies {
		if n := topology.Len(); n > 2*nodes || topology.Held() > nodes+1 {
			t.Errorf("%d domains by %s, %d of them with nodes; there are %d nodes", n, topology.Label, topology.Held(), nodes)
		}
	}
	if n := c.layout.Len(); n > 2*nodes || c.layout.Held() > nodes || len(c.by[antiAffinity][1].Sums) > 2*nodes {
		t.Errorf("%d places, %d of them with nodes, %d domains; there are %d nodes", n, c.layout.Held(), len(c.by[antiAffinity][1].Sums), nodes)
	}
}

// Thousands of topologies that no node has make one, and count as soon as a node has them:
// the epoch is another then.
func TestTopologiesThatNoNodeHas(t *testing.T) {
	p, tb := mustNew(t, nil), table.New()
	tb.SetNode(&object.Node{Name: "n", Labels: map[string]string{"zone": "z"}})
	tb.AddPod(pod("old", "web", "", away("key-7", app("web"))), "n")
	terms := func(name string) *object.Pod {
		all := &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{}}
		for i := range 1000 {
			all.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(all.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
				v1.PodAffinityTerm{TopologyKey: fmt.Sprint("key-", i), LabelSelector: app("web")})
		}
		return pod(name, "web", "", all)
	}
	pending := terms("new")
	verdict := func() (framework.Verdict, int) {
		c := p.PreFilter(tb, pending).State.(*counts)
		in := &framework.Input{Table: tb, Pod: pending, State: c}
		sync(in)
		var out [1]framework.Verdict
		rowVerdicts(in, tb.All()[:1], out[:])
		return out[0], len(c.layout.Topologies)
	}
	if v, topologies := verdict(); v != framework.Fits || topologies != 1 {
		t.Errorf("verdict %d in %d topologies, want it to fit in one", v, topologies)
	}
	before := p.Epoch(tb)
	tb.SetNode(&object.Node{Name: "n", Labels: map[string]string{"zone": "z", "key-7": "x"}})
	if p.Epoch(tb) == before {
		t.Error("the epoch is that of before the node had the label")
	}
	if v, topologies := verdict(); v != antiAffinityNotMet || topologies != 2 {
		t.Errorf("verdict %d in %d topologies, want %d in two", v, topologies, antiAffinityNotMet)
	}
	pending = pod("other", "web", "", nil)
	if v, _ := verdict(); v != existingAntiAffinityNotMet {
		t.Errorf("verdict %d, want %d", v, existingAntiAffinityNotMet)
	}
}

// Of thousands of terms, those that ask for a label with certain values are looked at for
// pods with these alone, and those that name namespaces for these.
func TestTermsAreFound(t *testing.T) {
	p, tb := mustNew(t, nil), table.New()
	tb.SetNode(&object.Node{Name: "n", Labels: map[string]string{"zone": "z"}})
	affinity := &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{}}
	list := &affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	for i := range 1000 {
		*list = append(*list, v1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: app(fmt.Sprint("app-", i)), Namespaces: []string{fmt.Sprint("ns-", i%10), fmt.Sprint("ns-", i%10)}})
	}
	c := p.PreFilter(tb, pod("new", "web", "", affinity)).State.(*counts)
	if n := len(c.naming["ns-3"]); n != 100 {
		t.Errorf("%d terms name the namespace, want 100", n)
	}
	x := newTermIndex(0)
	for i := range c.terms {
		x.add(&c.terms[i])
	}
	if len(x.anyValue) != 0 || len(x.byValue) != 1000 {
		t.Errorf("%d terms are looked at for all pods, and others for %d values, want 0 and 1000", len(x.anyValue), len(x.byValue))
	}
	found := 0
	x.selecting(map[string]string{"app": "app-500", "tier": "app-501"}, func(*termSet) { found++ })
	if found != 1 {
		t.Errorf("found %d terms, want 1", found)
	}
}

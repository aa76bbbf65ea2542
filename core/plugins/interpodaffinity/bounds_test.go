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

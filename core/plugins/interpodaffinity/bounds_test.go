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
	for i := range c.nodes.Topologies {
		topology := &c.nodes.Topologies[i]
		if n := topology.Domains.Len(); n > 2*nodes || topology.Domains.Held() > nodes {
			t.Errorf("%d domains by %s, %d of them with nodes; there are %d nodes", n, topology.Key, topology.Domains.Held(), nodes)
		}
	}
	if n := c.nodes.Len(); n > 2*nodes || c.nodes.Held() > nodes || len(c.own) > 2*nodes*c.size {
		t.Errorf("%d places, %d of them with nodes, %d rows; there are %d nodes", n, c.nodes.Held(), len(c.own), nodes)
	}
}

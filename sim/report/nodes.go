package report

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/edge/snapshot"
	"github.com/berth-scheduler/berth/sim"
	"github.com/berth-scheduler/berth/sim/whatif"
)

// nodeColumns are the nodes of a cluster by name, as columns of one length. The names and units are
// those of the daemon's answer about nodes.
type nodeColumns struct {
	Names     []string                    `json:"names"`
	Ready     []bool                      `json:"ready"`
	Cordoned  []bool                      `json:"cordoned"`
	Zones     []string                    `json:"zones"` // "" for none
	Resources map[v1.ResourceName]columns `json:"resources"`
}

// columns are what the nodes offer of one resource, and what their pods request.
type columns struct {
	Allocatable []int64 `json:"allocatable"`
	Requested   []int64 `json:"requested"`
}

func newNodeColumns(c *sim.Cluster) nodeColumns {
	nodes := c.Nodes()
	loads, _ := usage(c)
	all := nodeColumns{Names: []string{}, Ready: []bool{}, Cordoned: []bool{}, Zones: []string{}, Resources: map[v1.ResourceName]columns{}}
	for _, n := range nodes {
		all.Names, all.Ready = append(all.Names, n.Name), append(all.Ready, snapshot.IsReady(n))
		all.Cordoned, all.Zones = append(all.Cordoned, n.Unschedulable), append(all.Zones, n.Labels[v1.LabelTopologyZone])
	}
	for _, name := range append(offered(nodes), v1.ResourcePods) {
		of := columns{[]int64{}, []int64{}}
		for _, n := range nodes {
			l := loads[n.Name]
			there, taken := l.there[name], l.taken[name]
			if name == v1.ResourcePods {
				there, taken = l.allowed, l.pods
			}
			of.Allocatable, of.Requested = append(of.Allocatable, there), append(of.Requested, taken)
		}
		all.Resources[name] = of
	}
	return all
}

// nodesOf is the member with each node before and after the changes.
func nodesOf(r *whatif.Result) member {
	return member{"nodes", map[string]nodeColumns{"before": newNodeColumns(r.Before), "after": newNodeColumns(r.Cluster)}}
}

package fix

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// mostMoves bounds the nodes that are tried in other zones.
const mostMoves = 40

// anotherZone stands for a zone that no node is in.
const anotherZone = "another-zone"

// nodesElsewhere tries a node of a pool in a zone where none of it is, the smallest pool's
// first. The zones are those of nodes, those that the pod or its volumes
// ask for, and another one.
func (s *search) nodesElsewhere() {
	found, moves := 0, 0
	zones := s.zones()
	for _, p := range pools(s.table, s.set) {
		name, own := p.Like.Name, p.Like.Labels[v1.LabelTopologyZone]
		if own == "" || !s.holdsRequests(p.Like) {
			continue
		}
		for _, zone := range zones {
			if zone == own {
				continue
			}
			if moves++; moves > mostMoves {
				return
			}
			say := "add a node like " + name + " in zone " + zone
			if zone == anotherZone {
				say = "add a node like " + name + " in another zone"
			}
			n := p.NewNode(name + "-copy")
			n.moveTo(zone)
			if _, known := s.table.Find(n.API.Name); known || !s.consider(join(s.base, []edit{newNode(addNode, n, say)})) {
				continue
			}
			if found++; found == mostOfASort {
				return
			}
			break // the other zones of this shape say no more
		}
	}
}

// holdsRequests reports whether the node, empty, has what the pod requests.
func (s *search) holdsRequests(n *v1.Node) bool {
	holds := true
	s.eachRequest(func(name v1.ResourceName, request int64) {
		has := n.Status.Allocatable[name]
		holds = holds && request <= units(name, has)
	})
	return holds
}

// moveTo changes each label of the node that has its zone.
func (n *NewNode) moveTo(zone string) {
	labels := n.API.Labels
	own := labels[v1.LabelTopologyZone]
	for key, value := range labels { // any order: each by itself
		if value == own && (key == v1.LabelTopologyZone || strings.HasSuffix(key, "/zone")) {
			labels[key] = zone
		}
	}
	n.decode()
}

// zones are where a node could be, sorted, another zone last.
func (s *search) zones() []string {
	zones := map[string]bool{}
	for _, n := range s.nodes { // any order: a set
		if zone := n.Labels[v1.LabelTopologyZone]; zone != "" {
			zones[zone] = true
		}
	}
	if zone := s.spec.NodeSelector[v1.LabelTopologyZone]; zone != "" {
		zones[zone] = true
	}
	add := func(demands []v1.NodeSelectorRequirement) {
		for _, e := range demands {
			if e.Operator == v1.NodeSelectorOpIn && strings.HasSuffix(e.Key, "/zone") {
				for _, zone := range e.Values[:min(mostShapes, len(e.Values))] {
					zones[zone] = true
				}
			}
		}
	}
	if required := s.requiredNodes(); required != nil {
		for i := range required.NodeSelectorTerms[:min(mostEdits, len(required.NodeSelectorTerms))] {
			add(required.NodeSelectorTerms[i].MatchExpressions)
		}
	}
	for i := range s.pod.Volumes {
		c := table.Lookup[*object.PersistentVolumeClaim](s.table, object.PersistentVolumeClaims, s.pod.Namespace, s.pod.Volumes[i].Claim)
		if c == nil {
			continue
		}
		if v := table.Lookup[*object.PersistentVolume](s.table, object.PersistentVolumes, "", c.VolumeName); v != nil {
			for _, demands := range v.Nodes.Demands() {
				add(demands)
			}
		}
	}
	all := slices.Sorted(maps.Keys(zones))
	return append(all[:min(mostShapes, len(all))], anotherZone)
}

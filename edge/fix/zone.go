package fix

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/workload"
)

// mostMoves bounds the nodes that are tried in other zones.
const mostMoves = 40

// anotherZone stands for a zone that no node is in.
const anotherZone = "another-zone"

// place is a zone and a region. An empty region is that of the nodes that are there.
type place struct{ zone, region string }

func (p place) String() string {
	switch {
	case p.zone == anotherZone:
		return "another zone"
	case p.region != "":
		return "zone " + p.zone + " of region " + p.region
	}
	return "zone " + p.zone
}

// nodesElsewhere tries a node of a pool at a place where none of it is, the smallest pool's
// first. Of pools that differ in their places alone one is enough.
func (s *search) nodesElsewhere() {
	found, moves := map[string]bool{}, 0 // by what the node is there
	places := s.places()
	for _, p := range pools(s.table, s.set) {
		name, zone, region := p.Like.Name, p.Like.Labels[v1.LabelTopologyZone], p.Like.Labels[v1.LabelTopologyRegion]
		if zone == "" || !s.holdsRequests(p.Like) {
			continue
		}
		for _, to := range places {
			if to.zone == zone && (to.region == "" || to.region == region) || to.region != "" && region == "" {
				continue
			}
			if moves++; moves > mostMoves {
				return
			}
			n := p.NewNode(name + "-copy")
			n.moveTo(to)
			is := workload.PoolKey(n.API)
			if _, known := s.table.Find(n.API.Name); known || found[is] || !s.consider(join(s.base, []edit{newNode(addNode, n, "add a node like "+name+" in "+to.String())})) {
				continue
			}
			if found[is] = true; len(found) == mostOfASort {
				return
			}
			break // the other places of this shape say no more
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

// moveTo changes each label of the node that has its zone or region.
func (n *NewNode) moveTo(to place) {
	labels := n.API.Labels
	zone := labels[v1.LabelTopologyZone]
	for key, value := range labels { // any order: each by itself
		switch {
		case value == zone && namesZone(key):
			labels[key] = to.zone
		case to.region != "" && namesRegion(key):
			labels[key] = to.region
		}
	}
	n.decode()
}

func namesZone(key string) bool { return strings.HasSuffix(key, "/zone") }

func namesRegion(key string) bool {
	return key == v1.LabelTopologyRegion || key == v1.LabelFailureDomainBetaRegion
}

// places returns where a node could be: the zones of nodes and those that the pod or its
// volumes ask for, in the nodes' own region and in those that the volumes ask for.
// Another zone comes last.
func (s *search) places() (all []place) {
	zones, regions := map[string]bool{}, map[string]bool{}
	add := func(key string, values []string) {
		for _, value := range values[:min(mostShapes, len(values))] {
			switch {
			case value == "":
			case namesZone(key):
				zones[value] = true
			case namesRegion(key):
				regions[value] = true
			}
		}
	}
	for _, n := range s.nodes { // any order: a set
		if zone := n.Labels[v1.LabelTopologyZone]; zone != "" {
			zones[zone] = true
		}
	}
	if zone := s.spec.NodeSelector[v1.LabelTopologyZone]; zone != "" {
		zones[zone] = true
	}
	if required := s.requiredNodes(); required != nil {
		for i := range required.NodeSelectorTerms[:min(mostEdits, len(required.NodeSelectorTerms))] {
			addDemands(add, required.NodeSelectorTerms[i].MatchExpressions)
		}
	}
	s.volumePlaces(add)
	in := append([]string{""}, slices.Sorted(maps.Keys(regions))...)
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		for _, region := range in {
			all = append(all, place{zone, region})
		}
	}
	return append(all[:min(mostShapes, len(all))], place{zone: anotherZone})
}

func addDemands(add func(key string, values []string), demands []v1.NodeSelectorRequirement) {
	for _, e := range demands {
		if e.Operator == v1.NodeSelectorOpIn {
			add(e.Key, e.Values)
		}
	}
}

// volumePlaces adds what the labels and node affinities of the pod's volumes say.
func (s *search) volumePlaces(add func(key string, values []string)) {
	for i := range s.pod.Volumes {
		c := table.Lookup[*object.PersistentVolumeClaim](s.table, object.PersistentVolumeClaims, s.pod.Namespace, s.pod.Volumes[i].Claim)
		if c == nil {
			continue
		}
		v := table.Lookup[*object.PersistentVolume](s.table, object.PersistentVolumes, "", c.VolumeName)
		if v == nil {
			continue
		}
		for key, value := range v.Labels { // any order: sets
			add(key, strings.Split(value, "__")) // a list, as VolumeZone reads it
		}
		for _, demands := range v.Nodes.Demands() {
			addDemands(add, demands)
		}
	}
}

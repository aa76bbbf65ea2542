package topologyplacementgenerator

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

// New returns the plugin.
func New() framework.Plugin {
	return framework.Plugin{
		Name:     names.TopologyPlacementGenerator,
		Reads:    framework.Reads{Kinds: []object.Kind{object.PodGroups}},
		PodGroup: &framework.PodGroupPlugin{GeneratePlacements: generatePlacements},
	}
}

// generatePlacements returns a placement for each value of the group's topology label among the
// parent's nodes, sorted by value. If pods of the group are placed already, it returns only the
// placement with their value, or none if the parent has no such node. For a group without a
// topology key it returns the parent alone. It fails if the group is not known, or its placed pods
// do not have one value.
func generatePlacements(c *framework.PlacementCall, parent framework.Placement) ([]framework.Placement, *decision.Status) {
	g := table.PodGroup(c.Table, c.Group)
	if g == nil {
		return nil, decision.Failed("podgroup.scheduling.k8s.io %q not found", c.Group.Name)
	}
	if g.TopologyKey == "" {
		return []framework.Placement{parent}, nil
	}
	required, bound, err := domainOf(c, g.TopologyKey)
	if err != nil {
		return nil, decision.Failed("cannot determine domain for already scheduled pods: %w", err)
	}
	domains := map[string][]table.Row{}
	for _, r := range parent.Rows {
		if domain, has := c.Table.Node(r).Labels[g.TopologyKey]; has && (!bound || domain == required) {
			domains[domain] = append(domains[domain], r)
		}
	}
	var placements []framework.Placement
	for _, domain := range slices.Sorted(maps.Keys(domains)) {
		placements = append(placements, framework.Placement{Name: domain, Rows: domains[domain]})
	}
	return placements, nil
}

// domainOf returns the value of the topology label key that the nodes of all placed pods of the
// group have; bound is false if no pod is placed. It returns an error if the nodes have different
// values or one lacks the label.
func domainOf(c *framework.PlacementCall, key string) (domain string, bound bool, err error) {
	for uid := range c.Table.Groups().Named(c.Group).Placed() {
		placed := c.Table.Pod(uid)
		node := c.Table.Node(placed.Row)
		if node == nil {
			return "", true, fmt.Errorf("getting node for pod %s: nodeinfo not found for node name %q", placed.Pod.Key(), c.Table.Name(placed.Row))
		}
		value, has := node.Labels[key]
		switch {
		case !has:
			return "", true, fmt.Errorf("no topology domain found for pod %s", placed.Pod.Key())
		case bound && value != domain:
			return "", true, fmt.Errorf("more than 1 domain found for pod group: %s, %s", domain, value)
		}
		domain, bound = value, true
	}
	return domain, bound, nil
}

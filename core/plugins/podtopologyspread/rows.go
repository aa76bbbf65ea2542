package podtopologyspread

import (
	"strconv"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// A cell is a location and, below it, the number of matching pods on the node
// itself where that is what a constraint counts.
const (
	noNode  int64 = -1
	ignored int64 = -2 // a node that is not scored, as it lacks a label
)

func cellOf(place int32) int64           { return int64(place) << 32 }
func locationOf(cell int64) int32        { return int32(cell >> 32) }
func ownOf(cell int64) int               { return int(int32(cell)) }
func withOwn(cell int64, pods int) int64 { return cell>>32<<32 | int64(uint32(pods)) }

// policy is a set of node inclusion policies that a node meets, or that a
// constraint asks for.
type policy uint8

const (
	affinity policy = 1 << iota // the pod's node selector and required affinity admit the node
	taints                      // the pod tolerates the node's taints
)

// inclusion says which nodes count for which constraint.
type inclusion struct {
	required    *match.NodeSelector
	tolerations match.Tolerations
	comparisons bool
	needs       []policy // by constraint
}

// needs is what the constraint asks of nodes. Pods on a node itself are
// scored whatever it asks for.
func needs(c *match.SpreadConstraint, k kind) (p policy) {
	if k != hard && byHost(*c) {
		return 0
	}
	if c.HonorAffinity {
		p |= affinity
	}
	if c.HonorTaints {
		p |= taints
	}
	return p
}

func (in *inclusion) eligible(constraint int, met policy) bool {
	return in.needs[constraint]&^met == 0
}

func (in *inclusion) met(n *object.Node) (p policy) {
	if in.required.Matches(n.Subject()) {
		p |= affinity
	}
	if in.tolerations.Admits(n.Taints, in.comparisons) {
		p |= taints
	}
	return p
}

// addRow gives the row the cell of its node. Pods are not counted yet.
func (c *counts) addRow(t *table.Table, r table.Row) {
	n := t.Node(r)
	if n == nil {
		return
	}
	whole := c.locate(t, r, n)
	if c.kind == soft && !whole {
		c.release(c.domains)
		c.cells[r] = ignored
		return
	}
	id, known := c.locations.join(c.domains, whole)
	if known {
		c.release(c.domains) // the location holds the domains already
	}
	c.cells[r], c.admitted[r] = cellOf(id), c.nodes.met(n)
	if !whole {
		return
	}
	for i, s := range c.domains {
		if s == missing || !c.nodes.eligible(i, c.admitted[r]) {
			continue
		}
		t := &c.topologies[i]
		if s != own {
			d := t.domains.At(s.domain())
			if d.eligible++; d.eligible > 1 {
				continue
			}
		}
		t.minimum.insert(0)
	}
}

// locate fills domains with where the node is, holding the domains, and tells
// whether the node has all labels that it needs to have.
func (c *counts) locate(t *table.Table, r table.Row, n *object.Node) bool {
	c.domains = c.domains[:0]
	for i := range c.constraints {
		value, has := n.Labels[c.constraints[i].TopologyKey]
		scoresHost := c.kind != hard && byHost(c.constraints[i])
		switch {
		case !has && (c.kind != lenient || scoresHost):
			c.domains = append(c.domains, missing)
			if c.kind != lenient {
				return false
			}
		case i == c.uniquePerNode && (scoresHost || has && t.NodesWith(c.constraints[i].TopologyKey, value) == 1):
			c.domains = append(c.domains, own)
		case scoresHost: // by hostname once more: the node itself all the same
			c.domains = append(c.domains, c.hold(i, strconv.Itoa(int(r)), false))
		default:
			c.domains = append(c.domains, c.hold(i, value, !has))
		}
	}
	return true
}

// hold is where a node with the value is in a constraint's topology, whose
// domain is held.
func (c *counts) hold(constraint int, value string, bare bool) domainID {
	id, _ := c.topologies[constraint].domains.Hold(value)
	return at(id, bare)
}

// release releases the domains.
func (c *counts) release(sites []domainID) {
	for i, s := range sites {
		if s >= 0 {
			c.topologies[i].domains.Release(s.domain())
		}
	}
}

// removeRow takes the row, whose pods are not counted any more, off its
// location.
func (c *counts) removeRow(r table.Row) {
	cell := c.cells[r]
	c.cells[r] = noNode
	if cell < 0 {
		return
	}
	p := c.locations.of(cell)
	for i, s := range p.domains {
		if !p.complete || s == missing || !c.nodes.eligible(i, c.admitted[r]) {
			continue
		}
		t := &c.topologies[i]
		pods := c.podsAt(i, cell)
		if s != own {
			d := t.domains.At(s.domain())
			if d.eligible--; d.eligible > 0 {
				continue
			}
			d.pods = 0
		}
		t.minimum.remove(pods)
	}
	if p, empty := c.locations.ids.Release(locationOf(cell)); empty {
		c.release(p.domains)
	}
}

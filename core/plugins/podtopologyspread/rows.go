package podtopologyspread

import (
	"strconv"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// A cell is a place and, below it, the number of matching pods on the node
// itself where that is what a constraint counts.
const (
	noNode  int64 = -1
	ignored int64 = -2 // a node that is not scored, as it lacks a label
)

func cellOf(place int32) int64           { return int64(place) << 32 }
func placeOf(cell int64) int32           { return int32(cell >> 32) }
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

// enter gives the row the cell of its node. Pods are not counted yet.
func (c *counts) enter(t *table.Table, r table.Row) {
	n := t.Node(r)
	if n == nil {
		return
	}
	whole := c.locate(t, r, n)
	if c.kind == soft && !whole {
		c.letGo(c.sites)
		c.rows[r] = ignored
		return
	}
	id, known := c.places.join(c.sites, whole)
	if known {
		c.letGo(c.sites) // the place holds the domains already
	}
	c.rows[r], c.admitted[r] = cellOf(id), c.nodes.met(n)
	if !whole {
		return
	}
	for i, s := range c.sites {
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
		t.tally.insert(0)
	}
}

// locate fills sites with where the node is, holding the domains, and tells
// whether the node has all labels that it needs to have.
func (c *counts) locate(t *table.Table, r table.Row, n *object.Node) bool {
	c.sites = c.sites[:0]
	for i := range c.constraints {
		value, has := n.Labels[c.constraints[i].TopologyKey]
		scoresHost := c.kind != hard && byHost(c.constraints[i])
		switch {
		case !has && (c.kind != lenient || scoresHost):
			c.sites = append(c.sites, missing)
			if c.kind != lenient {
				return false
			}
		case i == c.solitary && (scoresHost || has && t.NodesWith(c.constraints[i].TopologyKey, value) == 1):
			c.sites = append(c.sites, own)
		case scoresHost: // by hostname once more: the node itself all the same
			c.sites = append(c.sites, c.hold(i, strconv.Itoa(int(r)), false))
		default:
			c.sites = append(c.sites, c.hold(i, value, !has))
		}
	}
	return true
}

// hold is where a node with the value is in a constraint's topology, whose
// domain is held.
func (c *counts) hold(constraint int, value string, bare bool) site {
	id, _ := c.topologies[constraint].domains.Hold(value)
	return at(id, bare)
}

// letGo releases the domains that sites hold.
func (c *counts) letGo(sites []site) {
	for i, s := range sites {
		if s >= 0 {
			c.topologies[i].domains.Release(s.domain())
		}
	}
}

// leave takes the row, whose pods are not counted any more, off its place.
func (c *counts) leave(r table.Row) {
	cell := c.rows[r]
	c.rows[r] = noNode
	if cell < 0 {
		return
	}
	p := c.places.of(cell)
	for i, s := range p.sites {
		if !p.whole || s == missing || !c.nodes.eligible(i, c.admitted[r]) {
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
		t.tally.remove(pods)
	}
	if p, empty := c.places.ids.Release(placeOf(cell)); empty {
		c.letGo(p.sites)
	}
}

package podtopologyspread

import (
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/domain"
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

func cellOf(location int32) int64        { return int64(location) << 32 }
func locationOf(cell int64) int32        { return int32(cell >> 32) }
func ownOf(cell int64) int               { return int(int32(cell)) }
func withOwn(cell int64, pods int) int64 { return cell>>32<<32 | int64(uint32(pods)) }

// policy is a set of node inclusion policies that a node meets, or that a
// constraint asks for.
type policy uint8

const (
	topologyLabels policy = 1 << iota // the node has all labels that it needs to have
	affinity                          // the pod's node selector and required affinity admit the node
	taints                            // the pod tolerates the node's taints
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
func needs(c *match.SpreadConstraint, k kind) policy {
	p := topologyLabels
	if k != hard && byHost(*c) {
		return p
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

// SetNode puts the row, whose pods are not counted, where its node is now.
func (c *counts) SetNode(t *table.Table, r table.Row) {
	c.removeRow(r)
	if n := t.Node(r); n != nil {
		c.addRow(t, r, n)
	}
}

// addRow gives the row the cell of its node.
func (c *counts) addRow(t *table.Table, r table.Row, n *object.Node) {
	c.admitted[r] = c.nodes.met(n)
	c.cells[r] = c.joinLocation(t, r, n)
	if c.cells[r] == ignored {
		return
	}
	for i, d := range c.domainsOf(c.cells[r]) {
		if d == domain.Missing || !c.nodes.eligible(i, c.admitted[r]) {
			continue
		}
		if d != domain.Own {
			count := c.locations.Count(i, d)
			if count.eligible++; count.eligible > 1 {
				continue
			}
		}
		c.minimums[i].insertDomain(0)
	}
}

// joinLocation is the cell of the row's node without pods. It notes whether the node
// has all labels that it needs to have.
func (c *counts) joinLocation(t *table.Table, r table.Row, n *object.Node) int64 {
	alike := c.first.of(r)
	if alike != nil && alike.cell != noNode {
		if c.admitted[r] |= alike.labels; alike.cell != ignored {
			c.locations.JoinAt(locationOf(alike.cell))
		}
		return alike.cell
	}
	found := firstRow{cell: ignored}
	if c.locate(t, r, n) {
		found.labels = topologyLabels
	}
	if found.labels == 0 && c.kind == soft {
		c.locations.Release(c.domains)
	} else {
		found.cell = cellOf(c.locations.Join(c.domains))
	}
	if alike != nil {
		*alike = found
	}
	c.admitted[r] |= found.labels
	return found.cell
}

// firstRows has, while all rows are put in their places for the first time, where the
// first was put of the rows whose nodes are alike in the labels that count. The zero
// value knows of none.
type firstRows struct {
	nodes *domain.Nodes // by the same keys; what counts share
	rows  []firstRow    // by its location
}

type firstRow struct {
	cell   int64  // noNode: none was put so far
	labels policy // topologyLabels, if the node has all labels that it needs to have
}

func (f *firstRows) of(r table.Row) *firstRow {
	if f.rows == nil {
		return nil
	}
	return &f.rows[f.nodes.LocationOf(r)]
}

// beginFirst begins to put all rows in their places. Nodes that are alike in their
// labels are then in the same domains, but where a row is one of its own.
func (c *counts) beginFirst(t *table.Table) {
	f, own := &c.first, c.uniqueKey()
	for i := range c.constraints {
		key := c.constraints[i].TopologyKey
		if i != c.locations.UniquePerNode && (key == own || c.kind != hard && byHost(c.constraints[i])) {
			return // rows have domains of their own besides
		}
	}
	if f.nodes.Follow(t); f.nodes.UniqueKey() != own {
		return
	}
	f.rows = slices.Repeat([]firstRow{{cell: noNode}}, f.nodes.Room())
}

// uniqueKey is the label by which nodes are domains of their own, "" for none.
func (c *counts) uniqueKey() string {
	if c.locations.UniquePerNode < 0 {
		return ""
	}
	return c.constraints[c.locations.UniquePerNode].TopologyKey
}

// locate fills domains with where the node is, holds them, and tells
// whether the node has all labels that it needs to have. The domains of a node
// that has not end with the first label that is missing.
func (c *counts) locate(t *table.Table, r table.Row, n *object.Node) bool {
	c.domains = c.domains[:0]
	for i := range c.constraints {
		d := c.domainOf(t, r, n, i)
		c.domains = append(c.domains, d)
		if d == domain.Missing && c.kind != lenient {
			return false
		}
	}
	return true
}

// domainOf returns the node's domain for the constraint, which it holds. To
// score by hostname, each node is one.
func (c *counts) domainOf(t *table.Table, r table.Row, n *object.Node, constraint int) domain.Domain {
	if c.kind == hard || !byHost(c.constraints[constraint]) {
		return c.locations.DomainOf(t, n, constraint)
	}
	switch _, has := n.Labels[v1.LabelHostname]; {
	case !has:
		return domain.Missing
	case constraint == c.locations.UniquePerNode:
		return domain.Own
	}
	return c.locations.Hold(constraint, strconv.Itoa(int(r)))
}

// removeRow takes the row, whose pods are not counted, off its location.
func (c *counts) removeRow(r table.Row) {
	cell := c.cells[r]
	c.cells[r] = noNode
	if cell < 0 {
		return
	}
	for i, d := range c.domainsOf(cell) {
		if d == domain.Missing || !c.nodes.eligible(i, c.admitted[r]) {
			continue
		}
		pods := c.podsAt(i, cell)
		if d != domain.Own {
			count := c.locations.Count(i, d)
			if count.eligible--; count.eligible > 0 {
				continue
			}
			count.pods = 0
		}
		c.minimums[i].removeDomain(pods)
	}
	c.locations.Leave(locationOf(cell))
}

// domainsOf are the domains, by constraint, of a cell that has a location.
func (c *counts) domainsOf(cell int64) []domain.Domain { return c.locations.Domains(locationOf(cell)) }

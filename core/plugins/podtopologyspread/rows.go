package podtopologyspread

import (
	"strconv"

	v1 "k8s.io/api/core/v1"

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

	policies = 1 << iota // how many sets of them there are
)

// inclusion says which nodes count for which constraint.
type inclusion struct {
	required    *match.NodeSelector
	tolerations match.Tolerations
	comparisons bool
	needs       []policy // by constraint
	any         policy   // what any of them needs
}

// need notes what the next constraint needs.
func (in *inclusion) need(p policy) {
	in.needs = append(in.needs, p)
	in.any |= p
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

// met are the policies that the node meets, of those that count.
func (in *inclusion) met(n *object.Node) (p policy) {
	if in.any&affinity != 0 && in.required.Matches(n.Subject()) {
		p |= affinity
	}
	if in.any&taints != 0 && in.tolerations.Admits(n.Taints, in.comparisons) {
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
		if d == Missing || !c.nodes.eligible(i, c.admitted[r]) {
			continue
		}
		if d != Own {
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
	cell, labels := c.locateCell(t, r, n)
	c.admitted[r] |= labels
	return cell
}

// locateCell is joinLocation for whoever notes that.
func (c *counts) locateCell(t *table.Table, r table.Row, n *object.Node) (cell int64, labels policy) {
	if c.locate(t, r, n) {
		labels = topologyLabels
	}
	if labels == 0 && c.kind == soft {
		c.locations.Release(c.domains)
		return ignored, labels
	}
	return cellOf(c.locations.Join(c.domains)), labels
}

// alikeRows are the rows whose nodes are alike in the labels that count.
type alikeRows struct {
	cell   int64
	labels policy        // topologyLabels, if the nodes have all labels that they need to have
	rows   [policies]int // by what the nodes meet
	total  int
}

// setNodes puts all rows, whose pods are not counted, where their nodes are, for the
// first time. Of nodes that are alike in their labels the first alone is looked up, so
// it tells, and does nothing, where rows have domains of their own besides.
func (c *counts) setNodes(t *table.Table) bool {
	own := c.uniqueKey()
	for i := range c.constraints {
		key := c.constraints[i].TopologyKey
		if i != c.locations.UniquePerNode && (key == own || c.kind != hard && byHost(c.constraints[i])) {
			return false
		}
	}
	if c.alike.Follow(t); c.alike.UniqueKey() != own {
		return false
	}
	all := make([]alikeRows, c.alike.Len())
	for r := range c.cells {
		n := t.Node(table.Row(r))
		if n == nil {
			continue
		}
		a := &all[c.alike.LocationOf(table.Row(r))]
		if a.total++; a.total == 1 {
			a.cell, a.labels = c.locateCell(t, table.Row(r), n)
		}
		met := c.nodes.met(n) | a.labels
		c.cells[r], c.admitted[r] = a.cell, met
		a.rows[met]++
	}
	for i := range all {
		if a := &all[i]; a.total > 0 && a.cell != ignored {
			c.joinRows(a)
		}
	}
	return true
}

// joinRows notes that the rows are in their domains. The least of these is found once
// pods are counted.
func (c *counts) joinRows(a *alikeRows) {
	c.locations.JoinAt(locationOf(a.cell), a.total-1)
	for i, d := range c.domainsOf(a.cell) {
		if d < 0 {
			continue
		}
		for met, rows := range a.rows {
			if c.nodes.eligible(i, policy(met)) {
				c.locations.Count(i, d).eligible += rows
			}
		}
	}
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
		if d == Missing && c.kind != lenient {
			return false
		}
	}
	return true
}

// domainOf returns the node's domain for the constraint, which it holds. To
// score by hostname, each node is one.
func (c *counts) domainOf(t *table.Table, r table.Row, n *object.Node, constraint int) Domain {
	if c.kind == hard || !byHost(c.constraints[constraint]) {
		return c.locations.DomainOf(t, n, constraint)
	}
	switch _, has := n.Labels[v1.LabelHostname]; {
	case !has:
		return Missing
	case constraint == c.locations.UniquePerNode:
		return Own
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
		if d == Missing || !c.nodes.eligible(i, c.admitted[r]) {
			continue
		}
		pods := c.podsAt(i, cell)
		if d != Own {
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
func (c *counts) domainsOf(cell int64) []Domain { return c.locations.Domains(locationOf(cell)) }

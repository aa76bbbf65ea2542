package domain

import (
	"github.com/berth-scheduler/berth/core/index/nodelabels"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Domain is the number of a topology domain (a value of a node label), or one of the values
// below.
type Domain int32

const (
	None    Domain = 0  // there is no node
	Missing Domain = 1  // the node lacks the label
	Unnamed Domain = 2  // the domain of the empty value
	Own     Domain = -1 // only in locations: the domain of UniquePerNode that this node alone is in

	firstDomain = Unnamed // the first Domain that stands for a label value
)

// NoNode stands for the location (in a Layout) of a row without a node. It is no Domain.
const NoNode = -1

// Key identifies a topology: a label of nodes, whose values are the domains. With PerNode
// each node that has the label is a domain of its own, whatever the value.
type Key struct {
	Label   string
	PerNode bool
}

// LabelOf returns the label to use as a Key: the label itself, or "" if no node has it.
// Pods may name thousands of labels that no node has. All of these share one topology,
// without domains, until Epoch changes.
func LabelOf(t *table.Table, label string) string {
	if nodelabels.Of(t).HasKey(label) {
		return label
	}
	return ""
}

// Epoch returns a number that changes whenever LabelOf may return something else for a
// label, or a Layout with nodes that are domains of their own may be out of date.
func Epoch(t *table.Table) uint64 {
	return nodelabels.Of(t).UniqueRevision() + nodelabels.Of(t).KeysRevision()
}

// Topology says, for one key such as the zone label, in which domain the node of each row
// is, so that pods can be counted by domain. A column of counts by domain has Len
// elements; what is counted at None and Missing is in no domain. It belongs to the table's
// owner.
type Topology struct {
	Key
	// Moves changes whenever the domain of a row does.
	Moves uint64

	of       []Domain // by row
	ids      ids      // numbers of label values that nodes have
	revision uint64   // of the table, up to which changed nodes are followed
}

// newTopology returns a topology that knows no row until Follow.
func newTopology(key Key) *Topology {
	p := &Topology{Key: key}
	p.ids.hold("") // Unnamed, whether it has nodes or not
	return p
}

// Of returns the domain of the node on each row, up to date as of Follow and valid until
// the next. Read only.
func (p *Topology) Of() []Domain { return p.of }

// Len returns a number greater than every domain, which is the length of a column of
// counts.
func (p *Topology) Len() int {
	if p.PerNode {
		return int(firstDomain) + len(p.of)
	}
	return int(firstDomain) + p.ids.len()
}

// Held returns the number of domains that have nodes, for checks of memory; Unnamed always
// counts. With PerNode it counts Unnamed alone.
func (p *Topology) Held() int { return p.ids.held() }

// Name returns the label value that the domain stands for. It must not be called with
// PerNode, None, Missing or Own.
func (p *Topology) Name(d Domain) string { return p.ids.list[int32(d-firstDomain)].name }

// Follow brings the domains of rows up to date with the table.
func (p *Topology) Follow(t *table.Table) {
	if n := t.Rows() - len(p.of); n > 0 {
		p.of = append(p.of, make([]Domain, n)...)
	}
	if t.NodeRevision() <= p.revision {
		return
	}
	t.NodesChanged(p.revision, func(r table.Row) bool {
		p.move(r, t.Node(r))
		return true
	})
	p.revision = t.Revision()
}

// move finds the row's domain again after its node changed, and counts a move if it is
// another. n is nil if the node is gone.
func (p *Topology) move(r table.Row, n *object.Node) {
	was, is := p.of[r], p.domainOf(r, n)
	if was >= firstDomain && !p.PerNode {
		p.ids.release(int32(was - firstDomain))
	}
	if was != is {
		p.of[r] = is
		p.Moves++
	}
}

// domainOf returns the domain of node n on row r, and counts one more node in it unless PerNode
// is set. n may be nil.
func (p *Topology) domainOf(r table.Row, n *object.Node) Domain {
	if n == nil {
		return None
	}
	value, has := n.Labels[p.Label]
	switch {
	case !has:
		return Missing
	case p.PerNode:
		return firstDomain + Domain(r)
	}
	id, _ := p.ids.hold(value)
	return firstDomain + Domain(id)
}

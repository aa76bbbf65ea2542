package podtopologyspread

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// kind says which nodes count.
type kind uint8

const (
	hard    kind = iota // those with all labels; they alone can be feasible
	soft                // those with all labels; others are not scored
	lenient             // every node; labels that are missing do not score
)

// counts is what the constraints of a class of pods come to: the matching
// pods in each domain. It belongs to the table's owner; only sync writes to
// it, and weigh to the weights.
type counts struct {
	kind        kind
	constraints []match.SpreadConstraint
	selections  []selection
	nodes       inclusion
	namespace   string

	topologies []topology // by constraint
	// uniquePerNode is the constraint by a label of which nodes have values of their
	// own: such a node being a domain, its pods are counted with the row. -1:
	// there is none.
	uniquePerNode int
	locations     locations
	// rows holds each row's cell, admitted the policies that it meets.
	cells    []int64
	admitted []policy

	revision, placements uint64     // up to which the table's journals are read
	fresh                bool       // nothing is counted yet
	tentative            bool       // what was counted anew holds for a try only
	domains              []domainID // room for enter

	weights weights
}

// selection is the constraints that have one selector.
type selection struct {
	match.Selector
	constraints []int
}

func (pl *plugin) newCounts(t *table.Table, p *object.Pod, constraints []match.SpreadConstraint, k kind) *counts {
	c := &counts{
		kind: k, constraints: constraints, namespace: p.Namespace, fresh: true,
		nodes:         inclusion{required: p.RequiredNodes, tolerations: p.Tolerations, comparisons: pl.comparisons},
		topologies:    make([]topology, len(constraints)),
		uniquePerNode: uniquePerNodeConstraint(t, constraints),
		weights:       newWeights(len(constraints)),
	}
	bySelector := map[string]int{}
	for i := range constraints {
		c.nodes.needs = append(c.nodes.needs, needs(&constraints[i], k))
		if k == hard {
			c.topologies[i].minimum.reset()
		}
		s := constraints[i].Selector
		at, ok := bySelector[s.Key]
		if !ok {
			at, bySelector[s.Key] = len(c.selections), len(c.selections)
			c.selections = append(c.selections, selection{Selector: s})
		}
		c.selections[at].constraints = append(c.selections[at].constraints, i)
	}
	return c
}

// uniquePerNodeConstraint picks the constraint by hostname, if there is one: scoring has it
// that each node is a domain then.
func uniquePerNodeConstraint(t *table.Table, constraints []match.SpreadConstraint) int {
	own := func(c match.SpreadConstraint) bool { return t.UniquePerNode(c.TopologyKey) }
	if i := slices.IndexFunc(constraints, byHost); i >= 0 && own(constraints[i]) {
		return i
	}
	return slices.IndexFunc(constraints, own)
}

func byHost(c match.SpreadConstraint) bool { return c.TopologyKey == v1.LabelHostname }

// sync brings the counts up to date: placements first, on the rows as they
// were, then the rows whose node changed. Where the journal does not reach
// back far enough all pods are counted anew.
func sync(in *framework.Input) { in.State.(*counts).sync(in.Table) }

func (c *counts) sync(t *table.Table) {
	if c.revision == t.Revision() && !c.fresh && (!c.tentative || t.Trying()) {
		return
	}
	for len(c.cells) < t.Rows() {
		c.cells, c.admitted = append(c.cells, noNode), append(c.admitted, 0)
	}
	recount := c.fresh || c.tentative && !t.Trying() || !t.PlacementsAfter(c.placements, c.placed)
	moved := false
	t.NodesChanged(c.revision, func(r table.Row) bool {
		moved = true
		if !recount {
			c.count(t, r, -1)
		}
		c.removeRow(r)
		c.addRow(t, r)
		if !recount {
			c.count(t, r, 1)
		}
		return true
	})
	if recount {
		c.recount(t)
	}
	c.tentative = t.Trying() && (c.tentative || recount || moved)
	c.fresh, c.revision, c.placements = false, t.Revision(), t.PlacementCount()
}

// placed counts one pod that came or left.
func (c *counts) placed(p table.Placement) {
	if c.cells[p.Row] < 0 || p.Pod.Namespace != c.namespace {
		return
	}
	n := 1
	if !p.Came {
		n = -1
	}
	for i := range c.selections {
		if s := &c.selections[i]; c.matches(s, p.Pod, p.Try) {
			c.add(p.Row, s, n)
		}
	}
}

// matches tells whether the pod counts. Pods that are on their way out do not,
// and a selector that selects all counts none; but v1.36 does not look at that
// when it tries how hard constraints stand with some pods more or fewer.
func (c *counts) matches(s *selection, p *object.Pod, try bool) bool {
	if (p.Terminating || s.Empty()) && !(try && c.kind == hard) {
		return false
	}
	return s.Matches(labels.Set(p.Labels))
}

// count adds the pods on the row (delta 1) or takes them off (-1).
func (c *counts) count(t *table.Table, r table.Row, delta int) {
	if c.cells[r] < 0 || !c.locations.of(c.cells[r]).complete {
		return
	}
	for i := range c.selections {
		s, n := &c.selections[i], 0
		for _, pl := range t.Pods(r) {
			if pl.Pod.Namespace == c.namespace && c.matches(s, pl.Pod, false) {
				n++
			}
		}
		if n > 0 {
			c.add(r, s, delta*n)
		}
	}
}

// add counts n pods more on the row, for the constraints with the selector.
func (c *counts) add(r table.Row, s *selection, n int) {
	place := c.locations.of(c.cells[r])
	if !place.complete {
		return
	}
	for _, i := range s.constraints {
		if place.domains[i] == missing || !c.nodes.eligible(i, c.admitted[r]) {
			continue
		}
		t := &c.topologies[i]
		pods := c.podsAt(i, c.cells[r])
		if place.domains[i] == own {
			c.cells[r] = withOwn(c.cells[r], pods+n)
		} else {
			t.domains.At(place.domains[i].domain()).pods += n
		}
		t.minimum.move(pods, pods+n)
	}
}

// podsAt is the number of matching pods in the domain, for the constraint, of
// the rows in the cell.
func (c *counts) podsAt(constraint int, cell int64) int {
	s := c.locations.of(cell).domains[constraint]
	if s == own {
		return ownOf(cell)
	}
	return c.topologies[constraint].domains.At(s.domain()).pods
}

// recount counts all pods anew. Places and domains stay, so that rows keep
// their cells' meaning.
func (c *counts) recount(t *table.Table) {
	for i := range c.topologies {
		topology := &c.topologies[i]
		if c.kind == hard {
			topology.minimum.reset()
		}
		for id := range topology.domains.Room() {
			d := topology.domains.At(int32(id))
			if d.pods = 0; d.eligible > 0 {
				topology.minimum.insert(0)
			}
		}
	}
	for r, cell := range c.cells {
		if cell < 0 {
			continue
		}
		c.cells[r] = withOwn(cell, 0)
		if c.ownDomain(table.Row(r)) {
			c.topologies[c.uniquePerNode].minimum.insert(0)
		}
		c.count(t, table.Row(r), 1)
	}
}

// ownDomain tells whether the row's node is a domain of its own that counts.
func (c *counts) ownDomain(r table.Row) bool {
	p := c.locations.of(c.cells[r])
	return c.uniquePerNode >= 0 && p.complete && p.domains[c.uniquePerNode] == own && c.nodes.eligible(c.uniquePerNode, c.admitted[r])
}

// cells writes each row's cell.
func cells(in *framework.Input, rows []table.Row, out []int64) {
	cells := in.State.(*counts).cells
	for i, r := range rows {
		out[i] = cells[r]
	}
}

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

// counts is the state of the constraints of a class of pods: the matching
// pods in each domain. It belongs to the table's owner; only sync writes to
// it, and countDomains to the weights.
type counts struct {
	kind        kind
	constraints []match.SpreadConstraint
	selections  []selection
	nodes       inclusion
	namespace   string

	locations Locations[count] // the topologies are by constraint
	// minimums count the domains that eligible nodes are in, by constraint
	// (hard constraints only).
	minimums []minTracker
	// cells holds each row's cell, admitted the policies that it meets.
	cells    []int64
	admitted []policy

	follower  table.Follower
	tentative bool     // what was counted by rows holds for a try only
	domains   []Domain // room for addRow
	fewer     []int    // room for exchanged
	alike     *Nodes   // by the same keys; what counts share

	weights weights
}

// count is what there is in a domain.
type count struct {
	eligible int // rows that count for it
	pods     int // matching pods on those rows
	seen     uint64
}

// selection is the constraints that have one selector.
type selection struct {
	match.Selector
	constraints []int
}

func (pl *plugin) newCounts(t *table.Table, p *object.Pod, constraints []match.SpreadConstraint, k kind) *counts {
	c := &counts{
		kind: k, constraints: constraints, namespace: p.Namespace,
		nodes: inclusion{required: p.RequiredNodes, tolerations: p.Tolerations, comparisons: pl.comparisons},
		locations: Locations[count]{
			Topologies:    make([]Topology[count], len(constraints)),
			UniquePerNode: uniquePerNodeConstraint(t, constraints),
			Lenient:       k == lenient,
		},
		minimums: make([]minTracker, len(constraints)),
		weights:  newWeights(len(constraints)),
	}
	bySelector, keys := map[string]int{}, make([]string, 0, len(constraints))
	for i := range constraints {
		keys = append(keys, constraints[i].TopologyKey)
		c.nodes.need(needs(&constraints[i], k))
		c.locations.Topologies[i].Key = constraints[i].TopologyKey
		if k == hard {
			c.minimums[i].reset()
		}
		s := constraints[i].Selector
		at, ok := bySelector[s.Key]
		if !ok {
			at, bySelector[s.Key] = len(c.selections), len(c.selections)
			c.selections = append(c.selections, selection{Selector: s})
		}
		c.selections[at].constraints = append(c.selections[at].constraints, i)
	}
	c.alike = pl.nodes.Nodes(t, keys)
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

// sync brings the counts up to date.
func sync(in *framework.Input) { in.State.(*counts).sync(in.Table) }

func (c *counts) sync(t *table.Table) {
	if c.tentative && !t.Trying() {
		c.follower.CountAnew()
	}
	if c.follower.Current(t) {
		return
	}
	if n := t.Rows() - len(c.cells); n > 0 {
		c.cells = append(slices.Grow(c.cells, n), slices.Repeat([]int64{noNode}, n)...)
		c.admitted = append(c.admitted, make([]policy, n)...)
	}
	byRow := true
	if c.follower.Unread() && c.setNodes(t) {
		c.follower.Begin(t, c)
	} else {
		byRow = c.follower.Follow(t, c)
	}
	c.tentative = t.Trying() && (c.tentative || byRow)
}

// CountPlacement counts one pod that came or left.
func (c *counts) CountPlacement(_ *table.Table, p table.Placement) {
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

// CountRow adds the pods on the row (sign 1) or takes them off (-1).
func (c *counts) CountRow(t *table.Table, r table.Row, sign int) {
	if c.cells[r] < 0 || c.admitted[r]&topologyLabels == 0 {
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
			c.add(r, s, sign*n)
		}
	}
}

// add counts n pods more on the row, for the constraints with the selector.
func (c *counts) add(r table.Row, s *selection, n int) {
	domains := c.domainsOf(c.cells[r])
	for _, i := range s.constraints {
		if !c.nodes.eligible(i, c.admitted[r]) || domains[i] == Missing {
			continue
		}
		pods := c.podsAt(i, c.cells[r])
		if domains[i] == Own {
			c.cells[r] = withOwn(c.cells[r], pods+n)
		} else {
			c.locations.Count(i, domains[i]).pods += n
		}
		c.minimums[i].move(pods, pods+n)
	}
}

// podsAt is the number of matching pods in the domain, for the constraint, of
// the rows in the cell.
func (c *counts) podsAt(constraint int, cell int64) int {
	d := c.domainsOf(cell)[constraint]
	if d == Own {
		return ownOf(cell)
	}
	return c.locations.Count(constraint, d).pods
}

// CountAll counts all pods anew. Locations and domains stay, so that rows keep
// their cells' meaning.
func (c *counts) CountAll(t *table.Table) {
	for i := range c.locations.Topologies {
		domains := &c.locations.Topologies[i].Domains
		for id := range domains.Len() {
			domains.At(int32(id)).pods = 0
		}
	}
	for r, cell := range c.cells {
		if cell >= 0 {
			c.cells[r] = withOwn(cell, 0)
		}
	}
	for i := range c.selections {
		s := &c.selections[i]
		found := make(tally, len(c.cells))
		t.PodsByLabels(c.namespace, func(same *table.PodsWithLabels) {
			if s.Empty() || !s.Matches(labels.Set(same.Labels)) {
				return
			}
			found.add(same.Rows(), 1)
			found.add(same.Terminating(), -1)
		})
		c.addFound(s, found)
	}
	if c.kind == hard {
		c.findMinimums()
	}
}

// tally is a number of pods by row.
type tally []int32

func (n tally) add(rows []table.Row, pods int32) {
	for _, r := range rows {
		n[r] += pods
	}
}

// addFound counts the pods that were found on the rows, for the constraints with the
// selector, except for the minimums.
func (c *counts) addFound(s *selection, found tally) {
	own := c.locations.UniquePerNode
	if !slices.Contains(s.constraints, own) {
		own = -1
	}
	for r, n := range found {
		cell, met := c.cells[r], c.admitted[r]
		if n == 0 || cell < 0 || met&topologyLabels == 0 {
			continue
		}
		domains := c.domainsOf(cell)
		for _, i := range s.constraints {
			if d := domains[i]; d >= 0 && c.nodes.eligible(i, met) {
				c.locations.Count(i, d).pods += int(n)
			}
		}
		if own >= 0 && domains[own] == Own && c.nodes.eligible(own, met) {
			c.cells[r] = withOwn(cell, ownOf(cell)+int(n))
		}
	}
}

// findMinimums counts the domains by their pods anew.
func (c *counts) findMinimums() {
	for i := range c.minimums {
		c.minimums[i].reset()
		domains := &c.locations.Topologies[i].Domains
		for id := range domains.Len() {
			if d := domains.At(int32(id)); d.eligible > 0 {
				c.minimums[i].insertDomain(d.pods)
			}
		}
	}
	for r, cell := range c.cells {
		if cell >= 0 && c.ownDomain(table.Row(r)) {
			c.minimums[c.locations.UniquePerNode].insertDomain(ownOf(cell))
		}
	}
}

// ownDomain tells whether the row's node is a domain of its own that counts.
func (c *counts) ownDomain(r table.Row) bool {
	i := c.locations.UniquePerNode
	return i >= 0 && c.nodes.eligible(i, c.admitted[r]) && c.domainsOf(c.cells[r])[i] == Own
}

// cells writes each row's cell.
func cells(in *framework.Input, rows []table.Row, out []int64) {
	cells := in.State.(*counts).cells
	for i, r := range rows {
		out[i] = cells[r]
	}
}

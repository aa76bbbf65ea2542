package podtopologyspread

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// kind selects the nodes that count.
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
	pl          *plugin
	pod         *object.Pod // or another with the same signature
	kind        kind
	constraints []match.SpreadConstraint
	columns     []column
	of          []int   // by constraint, its column
	own         *column // that in which nodes are domains of their own; nil: none

	any    policy // what any of the constraints needs of nodes
	taints uint64 // the taintState that the census is of
	census *census

	counted domain.Follower
	version uint64 // of the census

	weights weights
}

// column is the matching pods in each domain, for the constraints with one selector that
// ask the same of nodes.
type column struct {
	domain.Column
	match.Selector
	topology int
	need     policy
	first    int // the first column with the selector
	eligible *eligible
	least    least
	selects  bool // scratch of countAll
}

func byHost(c match.SpreadConstraint) bool { return c.TopologyKey == v1.LabelHostname }

// keyOf returns the constraint's topology: to score by hostname, each node is a domain.
func keyOf(t *table.Table, c *match.SpreadConstraint, k kind) domain.Key {
	return domain.Key{Label: domain.LabelOf(t, c.TopologyKey), PerNode: k != hard && byHost(*c)}
}

// columnKey identifies the constraints that share a column. Without a topology it
// identifies a selector, and finds the first column that has it.
type columnKey struct {
	topology domain.Key
	need     policy
	selector string
}

func (pl *plugin) newCounts(t *table.Table, p *object.Pod, constraints []match.SpreadConstraint, k kind) *counts {
	pl.begin(t)
	c := pl.take()
	c.pl, c.pod, c.kind, c.constraints = pl, p, k, constraints
	c.counted.ExactTries = true
	pl.keys = pl.keys[:0]
	for i := range constraints {
		if key := keyOf(t, &constraints[i], k); !slices.Contains(pl.keys, key) {
			pl.keys = append(pl.keys, key)
		}
	}
	layout := pl.layouts.Layout(pl.keys, true)
	if pl.columns == nil {
		pl.columns = map[columnKey]int{}
	}
	clear(pl.columns)
	for i := range constraints {
		c.of = append(c.of, c.columnOf(&constraints[i], keyOf(t, &constraints[i], k), layout))
	}
	owns := 0
	for i := range c.columns {
		if col := &c.columns[i]; col.topology == layout.UniquePerNode {
			c.own = col
			owns++
		}
	}
	if owns > 1 { // a cell holds one number
		c.own, layout = nil, pl.layouts.Layout(pl.keys, false)
	}
	c.taints = taintState(t)
	c.census = pl.censusOf(t, layout, c.any&^topologyLabels, k == lenient, p)
	c.weights.size(len(constraints))
	return c
}

// columnOf finds or makes the column of the constraint.
func (c *counts) columnOf(of *match.SpreadConstraint, topology domain.Key, layout *domain.Layout) int {
	need, known := needs(of, c.kind), c.pl.columns
	c.any |= need
	key := columnKey{topology, need, of.Selector.Key}
	if i, has := known[key]; has {
		return i
	}
	first, has := known[columnKey{selector: key.selector}]
	if !has {
		first = len(c.columns)
		known[columnKey{selector: key.selector}] = first
	}
	at := slices.IndexFunc(layout.Topologies, func(p *domain.Topology) bool { return p.Key == topology })
	known[key] = len(c.columns)
	c.columns = append(c.columns, column{
		Column: domain.Column{Topology: layout.Topologies[at]}, Selector: of.Selector, topology: at, need: need, first: first,
	})
	return len(c.columns) - 1
}

// sync brings the counts up to date.
func sync(in *framework.Input) { in.State.(*counts).sync(in.Table) }

// sync counts the pods that came or left. Where other nodes count than before, all is
// counted anew.
func (c *counts) sync(t *table.Table) {
	if c.counted.Current(t) {
		return
	}
	anew := false
	if state := taintState(t); c.any&taints != 0 && c.taints != state {
		c.pl.begin(t)
		c.census = c.pl.censusOf(t, c.census.layout, c.any&^topologyLabels, c.kind == lenient, c.pod)
		c.taints, anew = state, true
	}
	c.census.follow(t)
	anew = anew || c.version != c.census.version
	for i := range c.columns {
		anew = c.columns[i].Follow(t, &c.pl.rooms) || anew
	}
	c.counted.Follow(t, anew, c.countPlacement, func() (sets, rows int) { return c.countAll(t) })
	c.version = c.census.version
}

// countPlacement counts a pod that came (n is 1) or left (-1).
func (c *counts) countPlacement(p table.Placement, n int64) {
	if p.Pod.Namespace != c.pod.Namespace {
		return
	}
	met := c.census.admitted[p.Row]
	for i := range c.columns {
		if col := &c.columns[i]; col.need&^met == 0 && c.matches(col.Selector, p.Pod, p.Try) {
			d := col.Of()[p.Row]
			before := col.Sums[d]
			col.Add(p.Row, n)
			if c.kind == hard && d >= domain.Unnamed {
				col.least.move(before, before+n)
			}
		}
	}
}

// matches reports whether the pod counts. Terminating pods do not, and a selector that
// selects all counts none; but v1.36 ignores both when it evaluates hard constraints for
// a trial with more or fewer pods (try).
func (c *counts) matches(s match.Selector, p *object.Pod, try bool) bool {
	if (p.Terminating || s.Empty()) && !(try && c.kind == hard) {
		return false
	}
	return s.Matches(labels.Set(p.Labels))
}

// countAll counts all pods anew. It returns how many sets of labels and of rows it counted.
func (c *counts) countAll(t *table.Table) (sets, rows int) {
	for i := range c.columns {
		col := &c.columns[i]
		col.Clear()
		if col.least = (least{}); c.kind == hard {
			col.eligible = c.census.eligible(col.topology, col.need)
		}
	}
	t.PodsByLabels(c.pod.Namespace, func(same *table.PodsWithLabels) {
		sets++
		for i := range c.columns {
			col := &c.columns[i]
			if col.selects = c.columns[col.first].selects; col.first == i {
				col.selects = !col.Selector.Empty() && col.Selector.Matches(labels.Set(same.Labels))
			}
			if col.selects {
				col.addRows(same.Rows(), c.census.admitted, 1)
				col.addRows(same.Terminating(), c.census.admitted, -1)
				rows += len(same.Rows())
			}
		}
	})
	return sets, rows
}

// addRows counts n more on each of the rows whose nodes count.
func (col *column) addRows(rows []table.Row, admitted []policy, n int64) {
	of, sums, counts := col.Of(), col.Sums, countsIf(col.need, n)
	for _, r := range rows {
		sums[of[r]] += counts[admitted[r]]
	}
}

// podsAt returns the number of matching pods in the domain, for the constraint, of
// the rows in the cell.
func (c *counts) podsAt(constraint int, d domain.Domain, cell int64) int64 {
	col := &c.columns[c.of[constraint]]
	switch {
	case d == domain.Own:
		return ownOf(cell)
	case d == domain.Unnamed && c.kind == lenient && !col.PerNode:
		return col.Sums[d] + col.Sums[domain.Missing]
	}
	return col.Sums[d]
}

// domainOf returns the domain of the constraint in a location.
func (c *counts) domainOf(constraint int, location []domain.Domain) domain.Domain {
	return location[c.columns[c.of[constraint]].topology]
}

// locationOf returns the location of a cell. The low bits of the cell hold the number of
// matching pods on the node itself, if a constraint counts by node.
func locationOf(cell int64) int32 { return int32(cell >> 32) }
func ownOf(cell int64) int64      { return int64(int32(cell)) }

// cells writes each row's cell. That of a row without a node is negative.
func cells(in *framework.Input, rows []table.Row, out []int64) {
	c := in.State.(*counts)
	layout := c.census.layout
	locations, owns := layout.Locations(), layout.Owns()
	for i, r := range rows {
		out[i] = int64(locations[r]) << 32
	}
	if c.own == nil {
		return
	}
	sums := c.own.Sums
	for i, r := range rows {
		if d := owns[r]; d != domain.None {
			out[i] |= int64(uint32(sums[d]))
		}
	}
}

// countsKept bounds the released counts that are kept.
const countsKept = 64

// take returns counts without content. It reuses released ones.
func (pl *plugin) take() *counts {
	n := len(pl.idle) - 1
	if n < 0 {
		return &counts{}
	}
	c := pl.idle[n]
	pl.idle = pl.idle[:n]
	return c
}

// Release implements framework.Releaser.
func (c *counts) Release() {
	for i := range c.columns {
		c.pl.rooms.Give(&c.columns[i].Column)
	}
	if pl := c.pl; len(pl.idle) < countsKept {
		clear(c.columns)
		pl.idle = append(pl.idle, &counts{columns: c.columns[:0], of: c.of[:0], weights: c.weights})
	}
	*c = counts{}
}

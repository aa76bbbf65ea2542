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

// kind is the use of counts: for Filter, for Score, or for Score by kube-scheduler's own default
// constraints. It decides which nodes count.
type kind uint8

const (
	hard    kind = iota // Filter: nodes with all topology labels
	soft                // Score: nodes with all topology labels; others are not scored
	lenient             // Score by kube-scheduler's own default constraints: every node
)

// counts holds, for the constraints of one class of pods, the number of matching pods in each
// domain. Only sync changes it, except that countDomains sets the weights, and verdict finds the
// least of a column when it needs it.
type counts struct {
	pl          *plugin
	pod         *object.Pod // a pod of the class
	kind        kind
	constraints []match.SpreadConstraint
	columns     []column
	of          []int   // index of the column of each constraint
	own         *column // the only column in which each node is a domain (hostname); nil: none

	any    policy  // the union of the policies that the constraints need
	taints uint64  // the taintState when census was found
	census *census // which nodes count

	counted domain.Follower // up to which change of the table pods are counted
	version uint64          // that of census when pods were last counted

	weights weights
}

// column is the number of matching pods in each domain, for all constraints with the
// same topology, selector and policies.
type column struct {
	domain.Column
	match.Selector
	topology int       // index in the layout
	need     policy    // policies that a node must meet for its pods to count
	first    int       // index of the first column with the same selector
	eligible *eligible // the number of nodes that count, by domain; only for hard constraints
	least    least     // only for hard constraints
	selects  bool      // scratch of countAll
}

// byHost reports whether the constraint's topology key is the hostname label.
func byHost(c match.SpreadConstraint) bool { return c.TopologyKey == v1.LabelHostname }

// keyOf returns the topology of a constraint. If it is by hostname and k is for Score, each node is
// a domain, whatever its hostname label.
func keyOf(t *table.Table, c *match.SpreadConstraint, k kind) domain.Key {
	return domain.Key{Label: domain.LabelOf(t, c.TopologyKey), PerNode: k != hard && byHost(*c)}
}

// columnKey identifies a column. With only the selector set, it identifies the first
// column with that selector.
type columnKey struct {
	topology domain.Key
	need     policy
	selector string
}

// newCounts returns counts of kind k for the constraints and the class of pod p. Nothing is counted
// before sync.
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

// columnOf returns the index of the constraint's column, which constraints with the same topology,
// policies and selector share. It adds one if there is none. It also adds the policies that the
// constraint needs to c.any.
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

// sync brings the counts in the plugin's state up to date. The framework calls it
// before cells are read.
func sync(in *framework.Input) { in.State.(*counts).sync(in.Table) }

// sync counts the pods that came or left since the last call. It counts all pods again if other
// nodes count than at the last call, or nodes are in other domains.
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
	c.counted.Follow(t, anew, c.countPodChange, func() (sets, rows int) { return c.countAll(t) })
	c.version = c.census.version
}

// countPodChange counts a pod that came (n is 1) or left (-1), in each column whose selector
// matches it and whose policies its node meets.
func (c *counts) countPodChange(p table.PodChange, n int64) {
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

// matches reports whether the selector counts pod p. Terminating pods do not count, and an empty
// selector, which matches all pods, counts none. As in kube-scheduler, neither rule holds for hard
// constraints if the pod is added or removed for a trial (try).
func (c *counts) matches(s match.Selector, p *object.Pod, try bool) bool {
	if (p.Terminating || s.Empty()) && !(try && c.kind == hard) {
		return false
	}
	return s.Matches(labels.Set(p.Labels))
}

// countAll counts all placed pods again. It returns its cost as domain.Follower.Follow
// measures it: how many label sets of pods and how many rows it went through.
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

// addRows adds n to the domain's sum once for each of the rows whose node meets the column's
// policies. admitted is, by row, the policies that its node meets.
func (col *column) addRows(rows []table.Row, admitted []policy, n int64) {
	of, sums, counts := col.Of(), col.Sums, countsIf(col.need, n)
	for _, r := range rows {
		sums[of[r]] += counts[admitted[r]]
	}
}

// podsAt returns the number of matching pods in domain d of the constraint (by index). cell is that
// of a row in d: if d is domain.Own, it holds the number. If kind is lenient, nodes without the
// label count for the domain of the empty value.
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

// domainOf returns the domain in a location that the constraint (by index) counts by.
func (c *counts) domainOf(constraint int, location []domain.Domain) domain.Domain {
	return location[c.columns[c.of[constraint]].topology]
}

// locationOf returns the number of a cell's location, the combination of domains in which
// all rows of the cell are: the high 32 bits of the cell.
func locationOf(cell int64) int32 { return int32(cell >> 32) }

// ownOf returns the number of matching pods on each single node of the cell: the low 32
// bits of the cell, 0 if no constraint counts by node.
func ownOf(cell int64) int64 { return int64(int32(cell)) }

// cells writes the cell of each row, which decides its verdict and score: the number of
// its location and, in the low 32 bits, the number of matching pods on the node if a
// constraint counts by node. A row without a node has a negative cell.
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

// countsKept is how many released counts are kept for reuse.
const countsKept = 64

// take returns empty counts, reusing released ones.
func (pl *plugin) take() *counts {
	n := len(pl.idle) - 1
	if n < 0 {
		return &counts{}
	}
	c := pl.idle[n]
	pl.idle = pl.idle[:n]
	return c
}

// Release implements framework.Releaser: it gives back the memory when the class is
// dropped.
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

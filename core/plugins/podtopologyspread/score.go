package podtopologyspread

import (
	"math"
	"slices"

	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/framework"
)

// weights holds what one matching pod adds to the score, by constraint: the more
// domains the feasible nodes are in, the more.
type weights struct {
	byConstraint []float64
	sizes        []int // the number of domains for which each constraint has its weight
}

// size makes w hold weights for that many constraints, and sets them all to 0.
func (w *weights) size(constraints int) {
	w.byConstraint = append(w.byConstraint[:0], make([]float64, constraints)...)
	w.sizes = append(w.sizes[:0], make([]int, constraints)...)
}

// set sets the weight of the constraint (by index) for a number of domains: log(domains+2), as in
// kube-scheduler.
func (w *weights) set(constraint, domains int) {
	if w.sizes[constraint] != domains {
		w.sizes[constraint], w.byConstraint[constraint] = domains, math.Log(float64(domains+2))
	}
}

// countDomains sets the weight of each constraint by the number of domains in which the feasible
// nodes are: more domains weigh more, as upstream. feasible has the number of feasible nodes of
// each cell. Nodes that are not scored do not count. For a constraint by hostname each node is a
// domain. The framework calls it before it asks for scores.
func countDomains(in *framework.Input, feasible []framework.CellCount) {
	c := in.State.(*counts)
	w, nodes := &c.weights, 0
	for _, f := range feasible {
		if _, scored := c.locate(f.Cell); scored {
			nodes += f.Nodes
		}
	}
	for i := range c.constraints {
		n := nodes
		if !byHost(c.constraints[i]) {
			n = c.domainsOf(i, feasible)
		}
		w.set(i, n)
	}
}

// noneSeen returns a slice of n times false. It is scratch memory, valid until the next call.
func (pl *plugin) noneSeen(n int) []bool {
	pl.seen = append(pl.seen[:0], make([]bool, n)...)
	return pl.seen
}

// domainsOf returns the number of domains of the constraint (by index) that the feasible nodes are
// in. Nodes that are not scored do not count. Scored nodes without the label are in the domain of
// the empty value.
func (c *counts) domainsOf(constraint int, feasible []framework.CellCount) (n int) {
	seen := c.pl.noneSeen(c.columns[c.of[constraint]].Len())
	for _, f := range feasible {
		location, scored := c.locate(f.Cell)
		if !scored {
			continue
		}
		d := c.domainOf(constraint, location)
		if d == domain.Own {
			n += f.Nodes
			continue
		}
		if d == domain.Missing { // of a lenient constraint
			d = domain.Unnamed
		}
		if !seen[d] {
			seen[d] = true
			n++
		}
	}
	return n
}

// locate returns the domains of the cell's rows, by topology, and whether these rows are scored. A
// row is not scored if it has no node (location is nil then), or if its node lacks a topology
// label, unless kind is lenient.
func (c *counts) locate(cell int64) (location []domain.Domain, scored bool) {
	if cell < 0 {
		return nil, false
	}
	location = c.census.layout.Domains(locationOf(cell))
	return location, c.kind == lenient || !slices.Contains(location, domain.Missing)
}

// score returns the raw score of the rows in a cell: the weighted number of matching pods in their
// domains, of which fewer are better, plus maxSkew-1 for each constraint. It returns NoScore for
// rows that are not scored, as they lack a topology label. If kind is lenient, it leaves out the
// constraints whose label they lack instead.
func score(in *framework.Input, cell int64) int64 {
	c := in.State.(*counts)
	location, scored := c.locate(cell)
	if !scored {
		return framework.NoScore
	}
	var sum float64
	for i := range c.constraints {
		d := c.domainOf(i, location)
		if d == domain.Missing {
			continue
		}
		pods, weight := float64(c.podsAt(i, d, cell)), c.weights.byConstraint[i]
		// In kube-scheduler's order: the sum is one of floats.
		sum += pods*weight + c.permitted(i)
	}
	return int64(math.Round(sum))
}

// permitted returns maxSkew-1 of the constraint (by index), which its score includes on
// every node with the label.
func (c *counts) permitted(constraint int) float64 {
	return float64(c.constraints[constraint].MaxSkew - 1)
}

// normalize scales raw scores so that the least becomes 100 and the most 100*least/most: fewer pods
// are better. If most is 0, all become 100.
func normalize(raw, least, most int64) int64 {
	if most <= 0 {
		return 100
	}
	return 100 * (most + least - raw) / most
}

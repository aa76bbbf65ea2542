package podtopologyspread

import (
	"math"
	"slices"

	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/framework"
)

// weights holds the weight of a matching pod, by constraint: the more domains the
// feasible nodes are in, the greater.
type weights struct {
	byConstraint []float64
	sizes        []int // the numbers of domains that they stand for
}

func (w *weights) size(constraints int) {
	w.byConstraint = append(w.byConstraint[:0], make([]float64, constraints)...)
	w.sizes = append(w.sizes[:0], make([]int, constraints)...)
}

// set sets the weight of the constraint to that for a number of domains.
func (w *weights) set(constraint, domains int) {
	if w.sizes[constraint] != domains {
		w.sizes[constraint], w.byConstraint[constraint] = domains, math.Log(float64(domains+2))
	}
}

// countDomains sets the weight of each constraint by the number of domains of the
// feasible nodes, given by cell. By hostname each node that is scored is a domain.
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

// noneSeen returns scratch that marks which of n domains were seen; none is.
func (pl *plugin) noneSeen(n int) []bool {
	pl.seen = append(pl.seen[:0], make([]bool, n)...)
	return pl.seen
}

// domainsOf returns the number of domains of the constraint that the feasible nodes are in.
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

// locate returns the location of the cell, and whether its nodes are scored.
func (c *counts) locate(cell int64) (location []domain.Domain, scored bool) {
	if cell < 0 {
		return nil, false
	}
	location = c.census.layout.Domains(locationOf(cell))
	return location, c.kind == lenient || !slices.Contains(location, domain.Missing)
}

// score returns the weighted number of matching pods in the domains that the nodes
// of the cell are in; fewer are better. Skew that a constraint permits weighs
// the same everywhere, so that what is above it counts for less.
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
		// In v1.36's order: the sum is one of floats.
		sum += pods*weight + c.permitted(i)
	}
	return int64(math.Round(sum))
}

// permitted returns the score that the constraint adds on every node that has the label.
func (c *counts) permitted(constraint int) float64 {
	return float64(c.constraints[constraint].MaxSkew - 1)
}

// normalize maps the fewest matching pods to 100. If no node has any, all get 100.
func normalize(raw, least, most int64) int64 {
	if most <= 0 {
		return 100
	}
	return 100 * (most + least - raw) / most
}

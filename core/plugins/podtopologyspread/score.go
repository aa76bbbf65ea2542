package podtopologyspread

import (
	"math"
	"slices"

	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/framework"
)

// weights are what a pod in a domain weighs, by constraint: the more domains
// the feasible nodes are in, the more.
type weights struct {
	byConstraint []float64
	sizes        []int // the numbers of domains that they stand for
}

func (w *weights) size(constraints int) {
	w.byConstraint = append(w.byConstraint[:0], make([]float64, constraints)...)
	w.sizes = append(w.sizes[:0], make([]int, constraints)...)
}

// countDomains counts the domains that the feasible nodes are in. By hostname each
// node that is scored is one.
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
		if w.sizes[i] != n {
			w.sizes[i], w.byConstraint[i] = n, math.Log(float64(n+2))
		}
	}
}

// domainsOf is the number of domains of the constraint that the feasible nodes are in.
func (c *counts) domainsOf(constraint int, feasible []framework.CellCount) (n int) {
	seen := c.pl.seen[:0]
	seen = append(seen, make([]bool, c.columns[c.of[constraint]].Len())...)
	c.pl.seen = seen
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

// locate is the location of the cell, and whether its nodes are scored.
func (c *counts) locate(cell int64) (location []domain.Domain, scored bool) {
	if cell < 0 {
		return nil, false
	}
	location = c.census.layout.Domains(locationOf(cell))
	return location, c.kind == lenient || !slices.Contains(location, domain.Missing)
}

// score is the weighted number of matching pods in the domains that the nodes
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
		sum += pods*weight + float64(c.constraints[i].MaxSkew-1)
	}
	return int64(math.Round(sum))
}

// normalize makes the fewest 100. Where no node has matching pods, all do.
func normalize(raw, least, most int64) int64 {
	if most <= 0 {
		return 100
	}
	return 100 * (most + least - raw) / most
}

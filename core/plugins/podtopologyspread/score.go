package podtopologyspread

import (
	"math"
	"slices"

	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
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

// countRows sets the weight of each constraint by the number of domains of the feasible
// rows.
func countRows(in *framework.Input, feasible []table.Row) {
	c := in.State.(*counts)
	w, scored := &c.weights, c.scored(feasible)
	for i := range c.constraints {
		n := len(scored)
		if !byHost(c.constraints[i]) {
			n = c.domainsOfRows(i, scored)
		}
		w.set(i, n)
	}
}

// scored lists those of the rows that are scored. The list is good until the next one.
func (c *counts) scored(rows []table.Row) []table.Row {
	if c.kind == lenient {
		return rows
	}
	list := append(c.pl.rows[:0], rows...)
	for i := range c.columns {
		of := c.columns[i].Of()
		list = slices.DeleteFunc(list, func(r table.Row) bool { return of[r] == domain.Missing })
	}
	c.pl.rows = list
	return list
}

// domainsOfRows returns the number of domains of the constraint that the rows are in.
func (c *counts) domainsOfRows(constraint int, rows []table.Row) (n int) {
	col := &c.columns[c.of[constraint]]
	seen := c.pl.noneSeen(col.Len())
	of := col.Of()
	for _, r := range rows {
		d := max(of[r], domain.Unnamed) // Missing is the domain of the empty value to a lenient constraint
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

// rowScores writes the raw score of each row to out.
func rowScores(in *framework.Input, rows []table.Row, out []int64) {
	c := in.State.(*counts)
	sums := append(c.pl.sums[:0], make([]float64, len(rows))...)
	c.pl.sums = sums
	clear(out)
	for i := range c.constraints { // in v1.36's order, as score does
		col, weight, permitted := &c.columns[c.of[i]], c.weights.byConstraint[i], c.permitted(i)
		of, pods, more := col.Of(), col.Sums, int64(0)
		if c.kind == lenient && !col.PerNode {
			more = pods[domain.Missing] // they count in the domain of the empty value
		}
		for i, r := range rows {
			switch d := of[r]; {
			case d == domain.Missing && c.kind != lenient:
				out[i] = framework.NoScore
			case d == domain.Missing:
			case d == domain.Unnamed:
				sums[i] += float64(pods[d]+more)*weight + permitted
			default:
				sums[i] += float64(pods[d])*weight + permitted
			}
		}
	}
	for i, sum := range sums {
		if out[i] != framework.NoScore {
			out[i] = int64(math.Round(sum))
		}
	}
}

// normalize maps the fewest matching pods to 100. If no node has any, all get 100.
func normalize(raw, least, most int64) int64 {
	if most <= 0 {
		return 100
	}
	return 100 * (most + least - raw) / most
}

package podtopologyspread

import (
	"math"

	"github.com/berth-scheduler/berth/core/framework"
)

// weights are what a pod in a domain weighs, by constraint: the more domains
// the feasible nodes are in, the more.
type weights struct {
	byConstraint []float64
	sizes        []int // the numbers of domains that they stand for
	counted      []int // room for weigh
	pass         uint64
}

func newWeights(constraints int) weights {
	return weights{
		byConstraint: make([]float64, constraints), sizes: make([]int, constraints), counted: make([]int, constraints),
	}
}

// countDomains counts the domains that the feasible nodes are in. By hostname each
// node that is scored is one.
func countDomains(in *framework.Input, feasible []framework.CellCount) {
	c := in.State.(*counts)
	w := &c.weights
	w.pass++
	sizes, nodes := w.counted, 0
	clear(sizes)
	for _, f := range feasible {
		if f.Cell < 0 {
			continue
		}
		nodes += f.Nodes
		for i, d := range c.domainsOf(f.Cell) {
			if d == Own {
				sizes[i] += f.Nodes
			}
			if d < 0 {
				continue
			}
			if count := c.locations.Count(i, d); count.seen != w.pass {
				count.seen = w.pass
				sizes[i]++
			}
		}
	}
	for i, n := range sizes {
		if byHost(c.constraints[i]) {
			n = nodes
		}
		if w.sizes[i] != n {
			w.sizes[i], w.byConstraint[i] = n, math.Log(float64(n+2))
		}
	}
}

// score is the weighted number of matching pods in the domains that the nodes
// of the cell are in; fewer are better. Skew that a constraint permits weighs
// the same everywhere, so that what is above it counts for less.
func score(in *framework.Input, cell int64) int64 {
	if cell < 0 {
		return framework.NoScore
	}
	c := in.State.(*counts)
	var sum float64
	for i, d := range c.domainsOf(cell) {
		if d == Missing || d.Unlabelled() {
			continue
		}
		pods, weight := float64(c.podsAt(i, cell)), c.weights.byConstraint[i]
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

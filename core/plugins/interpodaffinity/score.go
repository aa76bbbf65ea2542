package interpodaffinity

import (
	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
)

// ownBits is how many bits of a cell hold what is on the node itself; more
// than weights of 100 for 5e9 terms on one node do not fit.
const ownBits = 40

// scoreCells writes each row's cell: its location and, below it, the sum of the
// weights on the node itself.
func scoreCells(in *framework.Input, rows []table.Row, out []int64) {
	c := in.State.(*counts)
	const most = 1<<(ownBits-1) - 1
	for i, r := range rows {
		if c.nodes.LocationOf(r) == noNode {
			out[i] = noNode
			continue
		}
		sum := max(-most, min(c.ownOf(r, topologyScore), most))
		out[i] = int64(c.nodes.LocationOf(r))<<ownBits | sum&(1<<ownBits-1)
	}
}

// score is the sum of the weights in the domains of the nodes of the cell.
func score(in *framework.Input, cell int64) int64 {
	if cell < 0 {
		return 0
	}
	c := in.State.(*counts)
	var sum int64
	for i, d := range c.nodes.Domains(int32(cell >> ownBits)) {
		switch d {
		case domain.Missing:
		case domain.Own:
			sum += cell << (64 - ownBits) >> (64 - ownBits)
		default:
			sum += c.sums[i][d.ID()][topologyScore]
		}
	}
	return sum
}

// normalize makes the least 0 and the most 100.
func normalize(raw, least, most int64) int64 {
	if most <= least {
		return 0
	}
	return int64(100 * (float64(raw-least) / float64(most-least)))
}

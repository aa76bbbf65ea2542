package interpodaffinity

import (
	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
)

// ownBits is the number of bits of a cell for the sum of the node itself. It is enough
// for 5e9 terms of weight 100 on one node.
const ownBits = 40

// scoreCells writes the cell of each row, which decides the row's raw score. The high bits are
// the number of its location (the rows in the same shared domains). The low ownBits, signed,
// are the sum of the weights in the domain that only this node is in, such as its hostname.
// The cell of a row without a node is negative.
func scoreCells(in *framework.Input, rows []table.Row, out []int64) {
	c := in.State.(*counts)
	locations, owns := c.layout.Locations(), c.layout.Owns()
	for i, r := range rows {
		out[i] = int64(locations[r]) << ownBits
	}
	own, existing := c.own[ownScore], c.own[existingScore]
	if own == nil && existing == nil {
		return
	}
	if own == nil {
		own, existing = existing, nil
	}
	const most = 1<<(ownBits-1) - 1
	for i, r := range rows {
		d := owns[r]
		if d == domain.None {
			continue
		}
		sum := own.Sums[d]
		if existing != nil {
			sum += existing.Sums[d]
		}
		out[i] |= max(-most, min(sum, most)) & (1<<ownBits - 1)
	}
}

// score returns the raw score of a cell's rows: the sum of the weights in their domains. It is 0
// for a negative cell (no node).
func score(in *framework.Input, cell int64) int64 {
	if cell < 0 {
		return 0
	}
	c := in.State.(*counts)
	sum := cell << (64 - ownBits) >> (64 - ownBits) // on the node itself
	domains := c.layout.Domains(int32(cell >> ownBits))
	for _, k := range [...]kind{ownScore, existingScore} {
		for i := range c.by[k] {
			if d := domains[c.by[k][i].at]; d != domain.Own && d != domain.Missing {
				sum += c.by[k][i].Sums[d]
			}
		}
	}
	return sum
}

// rowScores writes the raw score of each row to out, without cells.
func rowScores(in *framework.Input, rows []table.Row, out []int64) {
	c := in.State.(*counts)
	clear(out)
	for _, k := range [...]kind{ownScore, existingScore} {
		for i := range c.by[k] {
			p := &c.by[k][i]
			of, sums := p.Of(), p.Sums
			for i, r := range rows {
				if d := of[r]; d != domain.Missing {
					out[i] += sums[d]
				}
			}
		}
	}
}

// normalize scales raw scores so that the least becomes 0 and the greatest 100. It returns 0 if
// they are equal.
func normalize(raw, least, most int64) int64 {
	if most <= least {
		return 0
	}
	return int64(100 * (float64(raw-least) / float64(most-least)))
}

package engine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// buffers is memory that decisions reuse, one after the other. What a decision leaves in
// it is valid until the next one.
type buffers struct {
	feasible []table.Row // the feasible rows
	tied     []table.Row // those with the best total
	extremes []extremes  // by scorer
	counts   []framework.CellCount

	askedCells   []table.Row
	cellVerdicts [][]framework.Verdict // by cell filter, then row
	listVerdicts []framework.Verdict

	raws    [][]int64 // by scorer, then feasible row
	columns columnBuffers

	hostedVerdicts [][]framework.Verdict // by hosted filter, then row
	hostedScores   [][]int64             // by hosted scorer, then row; the first is the sum
	asked          []table.Row           // rows for a hosted plugin, with scores and verdicts
	scores         []int64
	verdicts       []framework.Verdict
	order          ranking.Order // rows by their totals
}

// clearedExtremes returns n extremes, one a scorer, all zero.
func (b *buffers) clearedExtremes(n int) []extremes {
	b.extremes = resize(b.extremes, n)
	clear(b.extremes)
	return b.extremes
}

// unaskedVerdicts returns the verdicts of the k-th hosted filter on n rows, all unasked.
func (b *buffers) unaskedVerdicts(k, n int) []framework.Verdict {
	for len(b.hostedVerdicts) <= k {
		b.hostedVerdicts = append(b.hostedVerdicts, nil)
	}
	verdicts := resize(b.hostedVerdicts[k], n)
	for r := range verdicts {
		verdicts[r] = unasked
	}
	b.hostedVerdicts[k] = verdicts
	return verdicts
}

// zeroScores returns the scores of the k-th hosted scorer for n rows, all 0.
func (b *buffers) zeroScores(k, n int) []int64 {
	for len(b.hostedScores) <= k {
		b.hostedScores = append(b.hostedScores, nil)
	}
	b.hostedScores[k] = resize(b.hostedScores[k], n)
	clear(b.hostedScores[k])
	return b.hostedScores[k]
}

// columnBuffers lends columns for one decision. begin takes them all back.
type columnBuffers struct {
	columns [][]int64
	used    int
}

func (c *columnBuffers) begin() { c.used = 0 }

// next returns a column of n entries with undefined content.
func (c *columnBuffers) next(n int) []int64 {
	if c.used == len(c.columns) {
		c.columns = append(c.columns, nil)
	}
	column := resize(c.columns[c.used], n)
	c.columns[c.used] = column
	c.used++
	return column
}

// resize returns a slice of n elements, with anything in them.
func resize[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s[:n]
	}
	return slices.Grow(s[:0], n+n/8)[:n]
}

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
	feasible []table.Row           // the feasible rows
	tied     []table.Row           // rows with the best total
	extremes []extremes            // by scorer
	counts   []framework.CellCount // feasible nodes of each cell, for one scorer

	askedCells   []table.Row           // rows that cell filters were asked about
	cellVerdicts [][]framework.Verdict // by cell filter, then row
	listVerdicts []framework.Verdict   // verdicts on a list of rows, in its order

	raws    [][]int64     // raw scores by scorer, then feasible row
	columns columnBuffers // slices by feasible row, for raw scores and totals

	hostedVerdicts [][]framework.Verdict // by hosted filter, then row
	hostedScores   [][]int64             // by hosted scorer, then row; the first is the sum
	asked          []table.Row           // rows that a hosted plugin is asked about in one call
	scores         []int64               // its scores of these rows, in their order
	verdicts       []framework.Verdict   // its verdicts on these rows, in their order
	order          ranking.Order         // sorts rows by their totals
}

// clearedExtremes returns a zeroed slice of n extremes (minimum and maximum of the raw
// scores), one for each scorer. The next call reuses it.
func (b *buffers) clearedExtremes(n int) []extremes {
	b.extremes = resize(b.extremes, n)
	clear(b.extremes)
	return b.extremes
}

// unaskedVerdicts returns a slice for the verdicts of the k-th hosted filter, by row, with
// all n set to unasked. It is reused by the next call with the same k.
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

// zeroScores returns a slice for the scores of n rows, all 0. k tells apart slices that are
// in use at the same time: 0 is the weighted sum, k the k-th hosted scorer. It is reused by
// the next call with the same k.
func (b *buffers) zeroScores(k, n int) []int64 {
	for len(b.hostedScores) <= k {
		b.hostedScores = append(b.hostedScores, nil)
	}
	b.hostedScores[k] = resize(b.hostedScores[k], n)
	clear(b.hostedScores[k])
	return b.hostedScores[k]
}

// columnBuffers lends int64 slices to one decision. begin reclaims all of them.
type columnBuffers struct {
	columns [][]int64
	used    int // how many of columns are lent
}

// begin reclaims all slices that next returned.
func (c *columnBuffers) begin() { c.used = 0 }

// next returns a slice of n entries with undefined content, valid until begin.
func (c *columnBuffers) next(n int) []int64 {
	if c.used == len(c.columns) {
		c.columns = append(c.columns, nil)
	}
	column := resize(c.columns[c.used], n)
	c.columns[c.used] = column
	c.used++
	return column
}

// resize returns a slice of length n in the memory of s if that is large enough, else in
// new memory. The content is undefined.
func resize[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s[:n]
	}
	return slices.Grow(s[:0], n+n/8)[:n]
}

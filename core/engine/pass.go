package engine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/par"
	"github.com/berth-scheduler/berth/core/table"
)

// scratch is room for what is found out about a list of rows, by their places
// in the list: the first filter that rejects, its verdict, the sum of final
// scores; and for one plugin's answers.
type scratch struct {
	first   []int16
	verdict []framework.Verdict
	final   []int64

	verdicts []framework.Verdict
	scores   []int64

	rows []table.Row // that changed
}

// size makes room for n rows.
func (s *scratch) size(n int) {
	s.first, s.verdict, s.final = resize(s.first, n), resize(s.verdict, n), resize(s.final, n)
	s.verdicts, s.scores = resize(s.verdicts, n), resize(s.scores, n)
}

// part is the room for some of the rows.
func (s *scratch) part(from, to int) scratch {
	return scratch{
		first: s.first[from:to], verdict: s.verdict[from:to], final: s.final[from:to],
		verdicts: s.verdicts[from:to], scores: s.scores[from:to],
	}
}

const (
	// chunk is the number of rows that all plugins see to before they go on,
	// so that what they write stays near.
	chunk = 512
	// grain is the least number of rows worth a goroutine of its own.
	grain = 1024
	// wave bounds the rows that are shared out at once, and with them the room
	// for what is found out.
	wave = 1 << 16
)

// pass has all rows of the table evaluated, over the cores, and then kept, one
// after the other, until that fails.
func pass(t *table.Table, workers int, found *scratch, evaluate func([]table.Row, *scratch), keep func([]table.Row, *scratch) bool) bool {
	size := wave
	if workers <= 1 || t.Rows() < 2*grain {
		workers, size = 1, chunk
	}
	for rows := range slices.Chunk(t.All(), size) {
		found.size(len(rows))
		par.Rows(len(rows), workers, grain, func(share par.Range) {
			for from := share.From; from < share.To; from += chunk {
				to := min(from+chunk, share.To)
				part := found.part(from, to)
				evaluate(rows[from:to], &part)
			}
		})
		if !keep(rows, found) {
			return false
		}
	}
	return true
}

// again has the rows that changed evaluated and kept, until that fails.
func again(found *scratch, evaluate func([]table.Row, *scratch), keep func([]table.Row, *scratch) bool) bool {
	for rows := range slices.Chunk(found.rows, chunk) {
		found.size(len(rows))
		evaluate(rows, found)
		if !keep(rows, found) {
			return false
		}
	}
	return true
}

// resize returns a slice of n elements, with anything in them.
func resize[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s[:n]
	}
	return slices.Grow(s[:0], n+n/8)[:n]
}

// extend returns the slice with n elements: those that it has, then zeros.
func extend[T any](s []T, n int) []T {
	if n <= len(s) {
		return s[:n]
	}
	return append(s, make([]T, n-len(s))...)
}

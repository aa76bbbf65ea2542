package engine

import (
	"math"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/par"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// scratch is room for what is found out about a list of rows, and for one plugin's
// answers.
type scratch struct {
	ranking.Answers

	verdicts []framework.Verdict
	scores   []int64
	rest     []table.Row // that a costly filter is asked about
	at       []int32     // where in the list each of them is

	rows []table.Row // that changed
}

// size makes room for n rows.
func (s *scratch) size(n int) {
	s.Filter, s.Verdict, s.Score = resize(s.Filter, n), resize(s.Verdict, n), resize(s.Score, n)
	s.verdicts, s.scores = resize(s.verdicts, n), resize(s.scores, n)
	s.rest, s.at = resize(s.rest, n), resize(s.at, n)
}

// part is the room for some of the rows.
func (s *scratch) part(from, to int) scratch {
	return scratch{
		Answers:  ranking.Answers{Filter: s.Filter[from:to], Verdict: s.Verdict[from:to], Score: s.Score[from:to]},
		verdicts: s.verdicts[from:to], scores: s.scores[from:to], rest: s.rest[from:to:to], at: s.at[from:to:to],
	}
}

const (
	// chunk is the number of rows that all plugins see to before they go on, so
	// that what they write stays near.
	chunk = 512
	// grain is the least number of rows worth a goroutine of its own.
	grain = 1024
	// wave bounds the rows that are shared out at once, and with them the room for
	// what is found out.
	wave = 1 << 16
)

// evaluateAll has all rows of the table evaluated, over the cores, and then kept,
// one after the other, until that fails.
func evaluateAll(t *table.Table, workers int, found *scratch, evaluate func([]table.Row, *scratch), keep func([]table.Row, *scratch) bool) bool {
	if workers <= 1 || t.Rows() < 2*grain {
		return evaluateRows(t.All(), found, evaluate, keep)
	}
	for rows := range slices.Chunk(t.All(), wave) {
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

// evaluateRows has the rows evaluated and kept, until that fails.
func evaluateRows(rows []table.Row, found *scratch, evaluate func([]table.Row, *scratch), keep func([]table.Row, *scratch) bool) bool {
	for rows := range slices.Chunk(rows, chunk) {
		found.size(len(rows))
		evaluate(rows, found)
		if !keep(rows, found) {
			return false
		}
	}
	return true
}

// run asks the filter about the rows and notes its rejections on those that no
// earlier filter rejects.
func (f *filter) run(rows []table.Row, found *scratch) {
	if f.Costly {
		f.runOnRest(rows, found)
		return
	}
	verdicts := found.verdicts[:len(rows)]
	f.Filter(&f.in, rows, verdicts)
	if allFit(verdicts) {
		return
	}
	for i, v := range verdicts {
		if v != framework.Fits && (found.Filter[i] == ranking.Feasible || found.Filter[i] > f.position) {
			found.Filter[i], found.Verdict[i] = f.position, uint64(v)
		}
	}
}

// runOnRest is run for a costly filter, which is asked about the rows alone that no
// earlier filter rejects.
func (f *filter) runOnRest(rows []table.Row, found *scratch) {
	rest, at := found.rest[:0], found.at[:0]
	for i, r := range rows {
		if found.Filter[i] == ranking.Feasible || found.Filter[i] > f.position {
			rest, at = append(rest, r), append(at, int32(i))
		}
	}
	verdicts := found.verdicts[:len(rest)]
	f.Filter(&f.in, rest, verdicts)
	for k, v := range verdicts {
		if i := at[k]; v != framework.Fits {
			found.Filter[i], found.Verdict[i] = f.position, uint64(v)
		}
	}
}

func allFit(verdicts []framework.Verdict) bool {
	var any framework.Verdict
	for _, v := range verdicts {
		any |= v
	}
	return any == framework.Fits
}

// add adds the scorer's weighted scores to the sums.
func (s *scorer) add(rows []table.Row, found *scratch) {
	scores := found.scores[:len(rows)]
	s.Score(&s.in, rows, scores)
	sums, weight := found.Answers.Score[:len(scores)], s.weight
	for i, score := range scores {
		if uint64(score) > maxScore { // or below 0
			sums[i] += outOfRange
			continue
		}
		sums[i] += weight * score
	}
}

// outOfRange makes a sum negative, for good: one of its scores was out of range.
const outOfRange = math.MinInt64 / 1024

// write puts the scorer's raw scores into the column.
func (s *scorer) write(column []int64, rows []table.Row, found *scratch) {
	if s.Costly {
		feasible := found.rest[:0]
		for i, r := range rows {
			if column[r] = 0; found.Filter[i] == ranking.Feasible {
				feasible = append(feasible, r)
			}
		}
		rows = feasible
	}
	scores := found.scores[:len(rows)]
	s.Score(&s.in, rows, scores)
	for i, score := range scores {
		column[rows[i]] = score
	}
}

// verdictAt is the filter's verdict on one row of the table as it stands.
func (f *filter) verdictAt(r table.Row) framework.Verdict {
	if f.cells != nil {
		return f.CellFilter.Filter(&f.in, f.cells.cell(r))
	}
	var out [1]framework.Verdict
	f.Filter(&f.in, one(f.in.Table, r), out[:])
	return out[0]
}

// scoreAt is the scorer's raw score of one row of the table as it stands.
func (s *scorer) scoreAt(r table.Row) int64 {
	if s.cells != nil {
		return s.CellScore.Score(&s.in, s.cells.cell(r))
	}
	var out [1]int64
	s.Score(&s.in, one(s.in.Table, r), out[:])
	return out[0]
}

// firstCause runs the filters on one row of the table as it stands.
func firstCause(filters []filter, r table.Row) ranking.Cause {
	for k := range filters {
		if filters[k].skip {
			continue
		}
		if v := filters[k].verdictAt(r); v != framework.Fits {
			return ranking.Cause{Filter: filters[k].position, Verdict: uint64(v)}
		}
	}
	return ranking.Cause{Filter: ranking.Feasible}
}

// one lists a single row.
func one(t *table.Table, r table.Row) []table.Row { return t.All()[r : r+1] }

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

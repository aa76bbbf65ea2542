package engine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/par"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// scratch holds the plugins' answers about a list of rows, and the memory for one plugin
// call.
type scratch struct {
	ranking.Answers

	verdicts   []framework.Verdict // of one filter call
	scores     []int64             // of one scorer call
	unrejected []table.Row         // rows of the list that no filter rejects so far
	at         []int32             // index in the list of each unrejected row

	// rows are the rows to ask about next. open are those of the changed rows that no closing
	// filter rejects.
	rows, open []table.Row
	beginning  beginning // of the last evaluation of all rows
}

// size resizes the buffers to n rows. values is the number of values of a row (columns of the
// index). Content is undefined.
func (s *scratch) size(n, values int) {
	s.Filter, s.Verdict, s.Score = resize(s.Filter, n), resize(s.Verdict, n), resize(s.Score, n)
	s.verdicts, s.scores = resize(s.verdicts, n), resize(s.scores, n)
	s.unrejected, s.at = resize(s.unrejected, n), resize(s.at, n)
	s.Values = resize(s.Values, values)
	for k := range s.Values {
		s.Values[k] = resize(s.Values[k], n)
	}
}

// part returns the scratch for the rows from (included) to to (excluded) of the list. Parts
// share memory with s but not with each other, so several cores can fill them.
func (s *scratch) part(from, to int) scratch {
	values := make([][]int64, len(s.Values))
	for k := range values {
		values[k] = s.Values[k][from:to]
	}
	return scratch{
		Answers:  ranking.Answers{Filter: s.Filter[from:to], Verdict: s.Verdict[from:to], Score: s.Score[from:to], Values: values},
		verdicts: s.verdicts[from:to], scores: s.scores[from:to], unrejected: s.unrejected[from:to:to], at: s.at[from:to:to],
	}
}

// Sizes of the work in rows.
const (
	// chunk is the number of rows that all plugins evaluate before the next rows, so that
	// the answers stay in the cache.
	chunk = 512
	// grain is the least number of rows for a goroutine of its own: to wake another core takes as
	// long as some thousand rows.
	grain = 4096
	// costlyGrain is the least number of rows for a goroutine of its own if a filter is costly.
	costlyGrain = 1024
	// wave bounds the rows that the cores evaluate before the answers are kept, and with
	// them the scratch memory.
	wave = 1 << 16
)

// evaluateAll evaluates rows on up to workers cores, each with at least grain rows. It calls
// evaluate for chunks of rows, in parallel, and keep for each wave of rows, in order, on this
// goroutine. It stops and returns false when keep returns false. values is the number of columns of
// the index.
func evaluateAll(rows []table.Row, values, workers, grain int, found *scratch, evaluate func([]table.Row, *scratch), keep func([]table.Row, *scratch) bool) bool {
	if workers <= 1 || len(rows) < 2*grain {
		return evaluateRows(rows, values, found, evaluate, keep)
	}
	for rows := range slices.Chunk(rows, wave) {
		found.size(len(rows), values)
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

// evaluateRows evaluates rows on this goroutine: for each chunk it calls evaluate, then keep. It
// stops and returns false when keep returns false. values is the number of columns of the index.
func evaluateRows(rows []table.Row, values int, found *scratch, evaluate func([]table.Row, *scratch), keep func([]table.Row, *scratch) bool) bool {
	for rows := range slices.Chunk(rows, chunk) {
		found.size(len(rows), values)
		evaluate(rows, found)
		if !keep(rows, found) {
			return false
		}
	}
	return true
}

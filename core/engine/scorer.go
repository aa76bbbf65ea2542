package engine

import (
	"math"

	"github.com/berth-scheduler/berth/core/answers"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/headroom"
	"github.com/berth-scheduler/berth/core/table"
)

// scorer is a score plugin with its weight and the state that its PreScore returned for a
// class.
type scorer struct {
	*framework.Plugin
	in        framework.Input // table, pod and PreScore state that it is asked with
	headroom  headroom.Score  // its formula, if the view's pass can compute it
	weight    int64
	cells     *cells             // nil: it answers by rows
	column    column             // of its raw scores if it normalises, or its cells; else not kept
	inPass    bool               // the view's pass computes it
	partition *answers.Partition // its kept scores; nil: it is asked about rows
}

// ask finds the scorer's raw scores of the rows and writes them to its column in found; without a
// column it adds the weighted scores to found.Score. at holds the index of each row in found's
// list; nil: the rows are that list.
func (s *scorer) ask(rows []table.Row, at []int32, found *scratch) {
	scores := found.scores[:len(rows)]
	if s.column.kept && at == nil {
		scores = found.Values[s.column.at][:len(rows)]
	}
	switch {
	case s.partition == nil:
		s.Score(&s.in, rows, scores)
	case !s.column.kept && s.partition.IsZero():
		return
	default:
		s.partition.Write(rows, scores)
	}
	switch {
	case s.column.kept && at == nil: // written in place
	case s.column.kept:
		found.setValues(s.column, scores, at)
	case at == nil:
		sums := found.Answers.Score[:len(scores)]
		for k, score := range scores {
			sums[k] += s.weighted(score)
		}
	default:
		for k, score := range scores {
			found.Answers.Score[at[k]] += s.weighted(score)
		}
	}
}

// setValues writes values to column c of the answers, which is indexed like the list of rows
// that s holds answers for: values[k] goes to index at[k]. A nil at means index k.
func (s *scratch) setValues(c column, values []int64, at []int32) {
	column := s.Values[c.at]
	if at == nil {
		copy(column, values)
	}
	for k, i := range at {
		column[i] = values[k]
	}
}

// weighted returns the score times the weight, to be added to a row's total. For a score
// outside of 0 to 100, for which the decision fails, it returns outOfRange.
func (s *scorer) weighted(score int64) int64 {
	if uint64(score) > maxScore { // or below 0
		return outOfRange
	}
	return s.weight * score
}

// outOfRange is so negative that a sum with it stays negative: it marks a row with a score
// out of range.
const outOfRange = math.MinInt64 / 1024

// scoreAt asks the scorer for its raw score of one row, on the table as it is now. Kept
// scores are not used.
func (s *scorer) scoreAt(r table.Row) int64 {
	if s.cells != nil {
		return s.scoreOfCell(r)
	}
	var out [1]int64
	s.Score(&s.in, one(s.in.Table, r), out[:])
	return out[0]
}

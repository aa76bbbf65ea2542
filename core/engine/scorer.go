package engine

import (
	"math"

	"github.com/berth-scheduler/berth/core/answers"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/headroom"
	"github.com/berth-scheduler/berth/core/table"
)

// scorer is a plugin with its weight and the state that its PreScore made for a
// class.
type scorer struct {
	*framework.Plugin
	in       framework.Input
	headroom headroom.Score // what it computes, if a pass can do that
	weight   int64
	cells    *cells             // nil: it answers by rows
	column   column             // of its raw scores that are normalised, or of its cells
	inPass   bool               // the pass can stand in for it
	said     *answers.Partition // nil: it is asked about rows
}

// ask records the scorer's scores of rows that are part of found's list. at holds the
// index of each row in that list; nil: the rows are the list.
func (s *scorer) ask(rows []table.Row, at []int32, found *scratch) {
	scores := found.scores[:len(rows)]
	if s.column.kept && at == nil {
		scores = found.Values[s.column.at][:len(rows)]
	}
	switch {
	case s.said == nil:
		s.Score(&s.in, rows, scores)
	case !s.column.kept && s.said.IsZero():
		return
	default:
		s.said.Write(rows, scores)
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

// setValues stores values of rows that are part of the list. at holds the index of each
// row in the list; nil: the rows are the list.
func (s *scratch) setValues(c column, values []int64, at []int32) {
	column := s.Values[c.at]
	if at == nil {
		copy(column, values)
	}
	for k, i := range at {
		column[i] = values[k]
	}
}

// weighted returns what the score adds to a sum.
func (s *scorer) weighted(score int64) int64 {
	if uint64(score) > maxScore { // or below 0
		return outOfRange
	}
	return s.weight * score
}

// outOfRange makes a sum negative, for good: one of its scores was out of range.
const outOfRange = math.MinInt64 / 1024

// scoreAt returns the scorer's raw score of one row of the table as it stands.
func (s *scorer) scoreAt(r table.Row) int64 {
	if s.cells != nil {
		return s.scoreOfCell(r)
	}
	var out [1]int64
	s.Score(&s.in, one(s.in.Table, r), out[:])
	return out[0]
}

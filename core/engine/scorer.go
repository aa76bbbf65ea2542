package engine

import (
	"math"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// scorer is a plugin with its weight and the state that its PreScore made for a
// class.
type scorer struct {
	*framework.Plugin
	in     framework.Input
	weight int64
	cells  *cells // nil: it answers by rows
	column column // of its raw scores that are normalised, or of its cells
}

// add adds the scorer's weighted scores to the sums.
func (s *scorer) add(rows []table.Row, found *scratch) {
	if s.Costly {
		s.addToFeasible(rows, found)
		return
	}
	scores := found.scores[:len(rows)]
	s.Score(&s.in, rows, scores)
	sums := found.Answers.Score[:len(scores)]
	for i, score := range scores {
		sums[i] += s.weighted(score)
	}
}

// addToFeasible asks the scorer only about feasible rows, and adds its weighted scores to
// their sums. It serves scorers for which a question costs more than the selection of
// rows.
func (s *scorer) addToFeasible(rows []table.Row, found *scratch) {
	feasible, at := found.unrejected[:0], found.at[:0]
	for i, r := range rows {
		if found.Filter[i] == ranking.Feasible {
			feasible, at = append(feasible, r), append(at, int32(i))
		}
	}
	if len(feasible) > 0 {
		s.addSubset(feasible, at, found)
	}
}

// addSubset adds the scorer's weighted scores for rows that are part of found's list. at
// holds the index of each row in that list.
func (s *scorer) addSubset(rows []table.Row, at []int32, found *scratch) {
	scores := found.scores[:len(rows)]
	s.Score(&s.in, rows, scores)
	for k, score := range scores {
		found.Answers.Score[at[k]] += s.weighted(score)
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

// write stores the scorer's raw scores in the column. A costly scorer is asked about
// feasible rows alone; the others get 0.
func (s *scorer) write(column []int64, rows []table.Row, found *scratch) {
	if s.Costly {
		feasible := found.unrejected[:0]
		for i, r := range rows {
			if column[r] = 0; found.Filter[i] == ranking.Feasible {
				feasible = append(feasible, r)
			}
		}
		rows = feasible
	}
	s.writeRows(column, rows, found)
}

// writeRows asks the scorer about all of the rows, whatever it costs, and stores its raw
// scores in the column.
func (s *scorer) writeRows(column []int64, rows []table.Row, found *scratch) {
	scores := found.scores[:len(rows)]
	s.Score(&s.in, rows, scores)
	for i, score := range scores {
		column[rows[i]] = score
	}
}

// scoreAt returns the scorer's raw score of one row of the table as it stands.
func (s *scorer) scoreAt(r table.Row) int64 {
	if s.cells != nil {
		return s.scoreOfCell(r)
	}
	var out [1]int64
	s.Score(&s.in, one(s.in.Table, r), out[:])
	return out[0]
}

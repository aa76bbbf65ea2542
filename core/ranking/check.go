package ranking

import (
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/table"
)

// Check compares each bucket's counts and lists with the states of the rows. It returns an
// error for the first difference, nil if there is none. It is for tests and audits.
func (x *Index) Check() error {
	for id := range x.buckets {
		if err := x.checkBucket(int32(id)); err != nil {
			return fmt.Errorf("bucket %d: %w", id, err)
		}
	}
	return nil
}

// checkBucket recounts the rows of one bucket and returns an error for the first count or
// list that differs.
func (x *Index) checkBucket(id int32) error {
	b := &x.buckets[id]
	byScore, rows := make([]int32, x.shape.Highest+1), 0
	for i, s := range x.states {
		r := table.Row(i)
		if !s.feasible() || int32(s>>scoreBits) != id {
			continue
		}
		score := s.score()
		if int(score) >= len(byScore) || score > b.top {
			return fmt.Errorf("row %d has score %d, the highest is %d", r, score, b.top)
		}
		if score >= b.lowest && !slices.Contains(b.lists[score-b.lowest], r) {
			return fmt.Errorf("row %d is not in the list for %d", r, score)
		}
		byScore[score]++
		rows++
	}
	if x.progress == counted && !slices.Equal(byScore, b.byScore) || rows != b.Rows || (rows > 0 && (b.ties == 0 || byScore[b.top] != b.ties)) {
		return fmt.Errorf("counts %d rows, %d with the highest score %d, by score %v; has %d, %v", b.Rows, b.ties, b.top, b.byScore, rows, byScore)
	}
	return nil
}

package ranking_test

import (
	"fmt"
	"maps"

	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// The decision of the package's comment: six rows in two zones, of which filter 2
// rejects two.
func Example() {
	var index ranking.Index
	index.Begin(ranking.Shape{Values: 1, Highest: 100}, 6)
	index.Update([]table.Row{0, 1, 2, 3, 4, 5}, &ranking.Answers{
		Filter:  []int16{0, 0, 0, 2, 0, 2},
		Verdict: []uint64{0, 0, 0, 1, 0, 1},
		Score:   []int64{71, 71, 90, 0, 40, 0},
		Values:  [][]int64{{'a', 'a', 'b', 0, 'a', 0}}, // the zones
	})
	index.Count()
	fmt.Println(index.Feasible, "feasible; by cause", maps.Collect(index.Causes()))

	pick := func() {
		buckets := index.Buckets()
		for i := range buckets {
			b := &buckets[i]
			b.Fits, b.Bonus = true, map[int64]int64{'a': 100, 'b': 50}[b.Value(0)]
		}
		row, total, ties := index.Pick(1)
		fmt.Printf("row %d with %d, %d ties\n", row, total, ties)
	}
	pick()
	index.Update([]table.Row{1}, &ranking.Answers{Filter: []int16{0}, Verdict: []uint64{0}, Score: []int64{66}, Values: [][]int64{{'a'}}})
	index.Count()
	pick()

	// Output:
	// 4 feasible; by cause map[{2 1}:2]
	// row 1 with 171, 2 ties
	// row 0 with 171, 1 ties
}

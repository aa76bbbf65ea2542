package draw_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/table"
)

// Three of four rows have the best score. Pods are spread over these three, and a pod's draw always
// has the same result.
func ExampleRow() {
	scores := []int{90, 70, 90, 90}
	best := draw.Rows{
		Candidates: len(scores),
		Candidate:  func(i int) table.Row { return table.Row(i) },
		Tied:       func(r table.Row) bool { return scores[r] == 90 },
	}
	drawn, again := map[table.Row]int{}, true
	for i := range 300 {
		seed := draw.Seed(1, types.UID(fmt.Sprint("pod-", i)), 0)
		row := draw.Row(seed, 3, best)
		drawn[row]++
		again = again && draw.Row(seed, 3, best) == row
	}
	fmt.Println("pods by row:", drawn)
	fmt.Println("the same again:", again)

	// Output:
	// pods by row: map[0:99 2:97 3:104]
	// the same again: true
}

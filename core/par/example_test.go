package par_test

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/par"
)

// Squares of a thousand numbers, each part written to its own place: the sum is the same however
// many goroutines work.
func ExampleRows() {
	for _, workers := range []int{1, 2, 8} {
		squares := make([]int, 1000)
		par.Rows(len(squares), workers, 16, func(part par.Range) {
			for i := part.From; i < part.To; i++ {
				squares[i] += i * i
			}
		})
		sum := 0
		for _, square := range squares {
			sum += square
		}
		fmt.Println(workers, "workers:", sum)
	}

	// Output:
	// 1 workers: 332833500
	// 2 workers: 332833500
	// 8 workers: 332833500
}

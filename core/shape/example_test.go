package shape_test

import (
	"fmt"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/shape"
)

// A profile fills nodes, but not to the brim: the score rises up to 80 percent in use, then falls.
func ExampleTabulate() {
	scores := shape.Tabulate([]configv1.UtilizationShapePoint{
		{Utilization: 20, Score: 0}, {Utilization: 80, Score: 10}, {Utilization: 100, Score: 5},
	})
	for _, percent := range []int{0, 20, 50, 80, 90, 100} {
		fmt.Printf("%d percent in use: score %d\n", percent, scores[percent])
	}

	// Output:
	// 0 percent in use: score 0
	// 20 percent in use: score 0
	// 50 percent in use: score 50
	// 80 percent in use: score 100
	// 90 percent in use: score 75
	// 100 percent in use: score 50
}

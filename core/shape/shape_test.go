package shape

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// The score runs straight between two points, cut off, and level beyond the outer ones.
func TestTabulate(t *testing.T) {
	f := Tabulate([]configv1.UtilizationShapePoint{{Utilization: 20, Score: 0}, {Utilization: 50, Score: 10}, {Utilization: 80, Score: 5}})
	for p, want := range map[int]int64{0: 0, 20: 0, 21: 3, 35: 50, 50: 100, 65: 75, 80: 50, 100: 50} {
		if f[p] != want {
			t.Errorf("at %d: got %d, want %d", p, f[p], want)
		}
	}
}

// A shape needs a point, utilizations that rise, and values in range; each fault is
// reported.
func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		points []configv1.UtilizationShapePoint
		wrong  int
	}{
		{nil, 1},
		{[]configv1.UtilizationShapePoint{{Utilization: 0, Score: 10}}, 0},
		{[]configv1.UtilizationShapePoint{{Utilization: 5}, {Utilization: 5}}, 1},
		{[]configv1.UtilizationShapePoint{{Utilization: -1, Score: -1}, {Utilization: 101, Score: 11}}, 4},
	} {
		if errs := Validate(field.NewPath("shape"), tt.points); len(errs) != tt.wrong {
			t.Errorf("%v: %v", tt.points, errs)
		}
	}
}

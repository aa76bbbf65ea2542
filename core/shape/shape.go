package shape

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// MaxPoint is the best score that a point of a shape may have.
const MaxPoint = 10

// Tabulate evaluates the line through the points for each percentage; it is
// level before the first and after the last. A point's score of 10 is 100. There
// has to be a point.
func Tabulate(points []configv1.UtilizationShapePoint) (f [101]int64) {
	for p := range f {
		f[p] = at(points, int64(p))
	}
	return f
}

func at(points []configv1.UtilizationShapePoint, p int64) int64 {
	const scale = 100 / MaxPoint
	for i, point := range points {
		x, y := int64(point.Utilization), int64(point.Score)*scale
		if p > x {
			continue
		}
		if i == 0 {
			return y
		}
		x0, y0 := int64(points[i-1].Utilization), int64(points[i-1].Score)*scale
		return y0 + (y-y0)*(p-x0)/(x-x0)
	}
	return int64(points[len(points)-1].Score) * scale
}

// Validate returns what is wrong with points that stand at the path.
func Validate(path *field.Path, points []configv1.UtilizationShapePoint) field.ErrorList {
	if len(points) == 0 {
		return field.ErrorList{field.Required(path, "at least one point must be specified")}
	}
	var errs field.ErrorList
	for i := 1; i < len(points); i++ {
		if points[i-1].Utilization >= points[i].Utilization {
			errs = append(errs, field.Invalid(path.Index(i).Child("utilization"), points[i].Utilization, "values must be sorted in increasing order"))
			break
		}
	}
	inRange := func(path *field.Path, n, most int32) {
		if n < 0 || n > most {
			errs = append(errs, field.Invalid(path, n, fmt.Sprintf("not in valid range [0, %d]", most)))
		}
	}
	for i, p := range points {
		inRange(path.Index(i).Child("utilization"), p.Utilization, 100)
		inRange(path.Index(i).Child("score"), p.Score, MaxPoint)
	}
	return errs
}
